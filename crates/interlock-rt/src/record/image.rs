//! Images on their way into the file; nothing here is ever waited for.

use prost_types::Timestamp;

use super::file::ImageMode;
use super::schema::foxglove::{CompressedImage, RawImage};

/// A camera as the recording needs to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CameraShape {
    pub(super) name: String,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) bgr: bool,
}

impl CameraShape {
    /// Bytes of one image.
    pub(super) fn bytes(&self) -> usize {
        3 * self.width as usize * self.height as usize
    }
}

/// A finished image message.
pub(super) enum Picture {
    Png(CompressedImage),
    Raw(RawImage),
}

/// Packs `pixels` (`[height, width, 3]`); None where there is nothing to write.
pub(super) fn pack(camera: &CameraShape, pixels: &[u8], epoch_ns: u64, mode: ImageMode) -> Option<Picture> {
    if pixels.len() != camera.bytes() {
        return None;
    }
    let timestamp = timestamp(epoch_ns);
    match mode {
        ImageMode::None => None,
        ImageMode::Raw => Some(Picture::Raw(RawImage {
            timestamp,
            frame_id: camera.name.clone(),
            width: camera.width,
            height: camera.height,
            encoding: if camera.bgr { "bgr8" } else { "rgb8" }.to_owned(),
            step: 3 * camera.width,
            data: pixels.to_vec(),
        })),
        ImageMode::Png => Some(Picture::Png(CompressedImage {
            timestamp,
            frame_id: camera.name.clone(),
            data: png(camera, pixels)?,
            format: "png".to_owned(),
        })),
    }
}

fn png(camera: &CameraShape, pixels: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(pixels.len() / 2);
    let mut encoder = png::Encoder::new(&mut out, camera.width, camera.height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_compression(png::Compression::Fast);
    // The one filter that undoes itself a whole row at a time.
    encoder.set_filter(png::Filter::Up);
    let mut writer = encoder.write_header().ok()?;
    if camera.bgr {
        // A PNG is always red first.
        let swapped: Vec<u8> = pixels.chunks_exact(3).flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        writer.write_image_data(&swapped).ok()?;
    } else {
        writer.write_image_data(pixels).ok()?;
    }
    writer.finish().ok()?;
    Some(out)
}

fn timestamp(epoch_ns: u64) -> Option<Timestamp> {
    let seconds = i64::try_from(epoch_ns / 1_000_000_000).ok()?;
    let nanos = i32::try_from(epoch_ns % 1_000_000_000).ok()?;
    Some(Timestamp { seconds, nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bgr: bool) -> Vec<u8> {
        let camera = CameraShape { name: "front".into(), width: 2, height: 1, bgr };
        let Some(Picture::Png(message)) = pack(&camera, &[10, 20, 30, 40, 50, 60], 1_500_000_002, ImageMode::Png)
        else {
            panic!("no picture");
        };
        assert_eq!(message.timestamp, Some(Timestamp { seconds: 1, nanos: 500_000_002 }));
        let mut reader = png::Decoder::new(std::io::Cursor::new(&message.data)).read_info().unwrap();
        let mut out = vec![0; 6];
        reader.next_frame(&mut out).unwrap();
        out
    }

    #[test]
    fn a_png_is_red_first_whatever_the_camera_gives() {
        assert_eq!(decoded(false), [10, 20, 30, 40, 50, 60]);
        assert_eq!(decoded(true), [30, 20, 10, 60, 50, 40]);
    }

    #[test]
    fn an_image_of_the_wrong_size_is_not_written() {
        let camera = CameraShape { name: "front".into(), width: 2, height: 1, bgr: false };
        assert!(pack(&camera, &[0; 5], 0, ImageMode::Raw).is_none());
    }
}
