"""A camera by ray casting: one ray a pixel on the CPU, so that pictures need no OpenGL."""

import mujoco
import numpy as np
from numpy.typing import NDArray

LIGHT_FROM = (0.35, -0.45, 0.82)  # world frame; towards the light
AMBIENT = 0.45
SKY_RGB = (0.58, 0.62, 0.66)
REACH_M = 5.0


class RayCamera:
    """One fixed camera of a MuJoCo model, flat-shaded from surface normals.

    About 2 ms for 96 x 96 pixels; reproducible bit for bit.
    """

    def __init__(self, model: mujoco.MjModel, name: str, height: int, width: int) -> None:
        self._model = model
        self._camera = model.camera(name).id
        self._shape = (height, width)
        self._light = np.array(LIGHT_FROM) / np.linalg.norm(LIGHT_FROM)
        self._rays = _rays(float(model.cam_fovy[self._camera]), height, width)
        # The extra last row is the sky: a miss has geom id -1.
        self._colours = np.vstack([np.array(model.geom_rgba)[:, :3], [SKY_RGB]])
        count = height * width
        self._geoms = np.empty((count, 1), dtype=np.int32)
        self._distances = np.empty((count, 1))
        self._normals = np.empty((3 * count, 1))

    def image(self, data: mujoco.MjData) -> NDArray[np.uint8]:
        """Casts every ray and returns RGB. Shape (height, width, 3)."""
        world_from_camera = np.array(data.cam_xmat[self._camera]).reshape(3, 3)
        origin = np.array(data.cam_xpos[self._camera]).reshape(3, 1)
        rays = np.ascontiguousarray(self._rays @ world_from_camera.T)
        mujoco.mj_multiRay(
            m=self._model,
            d=data,
            pnt=origin,
            vec=rays.reshape(-1, 1),
            geomgroup=None,
            flg_static=True,
            bodyexclude=-1,
            geomid=self._geoms,
            dist=self._distances,
            normal=self._normals,
            nray=len(rays),
            cutoff=REACH_M,
        )
        hit = self._geoms[:, 0] >= 0
        facing = np.clip(self._normals.reshape(-1, 3) @ self._light, 0.0, 1.0)
        shade = np.where(hit, AMBIENT + (1.0 - AMBIENT) * facing, 1.0)
        rgb = self._colours[self._geoms[:, 0]] * shade[:, None]
        return np.rint(rgb * 255.0).astype(np.uint8).reshape(*self._shape, 3)


def _rays(fovy_deg: float, height: int, width: int) -> NDArray[np.float64]:
    """Unit rays through the pixel centres in the camera's frame (x right, y up, looking along -z). Shape (h*w, 3)."""
    half = np.tan(np.radians(fovy_deg) / 2)
    y = half * (1 - 2 * (np.arange(height) + 0.5) / height)
    x = half * (width / height) * (2 * (np.arange(width) + 0.5) / width - 1)
    grid_y, grid_x = np.meshgrid(y, x, indexing="ij")
    rays = np.stack([grid_x, grid_y, -np.ones_like(grid_x)], axis=-1).reshape(-1, 3)
    return np.asarray(rays / np.linalg.norm(rays, axis=1, keepdims=True), dtype=np.float64)
