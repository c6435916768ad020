//! Room on the disk.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How much a recording may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Room that must stay free on the file system.
    pub reserve_bytes: u64,
    /// Largest file.
    pub file_bytes: u64,
}

impl Default for Quota {
    fn default() -> Self {
        Quota { reserve_bytes: 512 << 20, file_bytes: 16 << 30 }
    }
}

/// What may still be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    Enough,
    /// Images have to end.
    Low,
    /// Everything has to end.
    None,
}

/// Free room around one file; a path of None knows only the quota.
pub(super) struct Disk {
    pub(super) folder: Option<PathBuf>,
    pub(super) quota: Quota,
}

impl Disk {
    /// Judges a file of `written` bytes. Low begins where a quarter of the quota or of the reserve is left to use.
    pub(super) fn room(&self, written: u64) -> Room {
        let left_of_file = self.quota.file_bytes.saturating_sub(written);
        let free = self.folder.as_deref().map_or(Some(u64::MAX), free_bytes).unwrap_or(0);
        let left_of_disk = free.saturating_sub(self.quota.reserve_bytes);
        if left_of_file == 0 || left_of_disk == 0 {
            Room::None
        } else if left_of_file < self.quota.file_bytes / 4 || left_of_disk < self.quota.reserve_bytes / 4 {
            Room::Low
        } else {
            Room::Enough
        }
    }
}

/// Bytes that this user may still write in `folder`; None where that cannot be known.
fn free_bytes(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero is a valid value of this plain struct.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: a C string and a struct to fill.
    let done = unsafe { libc::statvfs(path.as_ptr(), &raw mut stat) } == 0;
    done.then(|| stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_end_before_everything_does() {
        let disk = Disk { folder: None, quota: Quota { reserve_bytes: 0, file_bytes: 100 } };
        assert_eq!(
            [0, 70, 80, 100, 200].map(|written| disk.room(written)),
            [Room::Enough, Room::Enough, Room::Low, Room::None, Room::None]
        );
    }

    #[test]
    fn a_reserve_that_the_disk_does_not_have_leaves_no_room() {
        let quota = |reserve_bytes| Quota { reserve_bytes, file_bytes: u64::MAX };
        let folder = Some(std::env::temp_dir());
        assert_eq!(Disk { folder: folder.clone(), quota: quota(u64::MAX) }.room(0), Room::None);
        assert_eq!(Disk { folder, quota: quota(0) }.room(0), Room::Enough);
        assert_eq!(Disk { folder: Some("/nonexistent".into()), quota: quota(0) }.room(0), Room::None);
    }
}
