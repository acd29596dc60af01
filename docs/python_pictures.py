# SPDX-License-Identifier: MIT
"""python_pictures.py - runs the code of docs/python.md and draws its pictures into docs/pictures; needs
matplotlib and PyTorch.
"""
import os
import re

import matplotlib
import numpy as np

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import torch  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
space = {"torch": torch}
for block in re.findall(r"```python\n(.*?)```", open(os.path.join(HERE, "python.md")).read(), re.S):
    exec(block, space)


def save(name):
    plt.tight_layout()
    plt.savefig(os.path.join(HERE, "pictures", name), dpi=80, metadata={"Software": None})
    plt.close()


figure, axes = plt.subplots(1, 5, figsize=(12, 2.7))
for axis, (level, _) in zip(axes, space["levels"]):
    level = level[:min(1200, level.shape[0]), :min(1200, level.shape[0])].tocoo()
    axis.plot(level.col, level.row, ",k")
    axis.invert_yaxis()
    axis.set(xticks=[], yticks=[], aspect="equal")
for axis, (level, _) in zip(axes, space["levels"]):
    axis.set_title(f"{level.shape[0]:,} rows", fontsize=10)
axes[4].clear()
axes[4].set_aspect("auto")
axes[4].semilogy(np.array(space["residuals"]) / space["residuals"][0], ".-k")
axes[4].set_title("residual, by cycles", fontsize=10)
save("python-multigrid.png")

figure, axes = plt.subplots(1, 2, figsize=(8, 2.7))
axes[0].semilogy(space["losses"], "k")
axes[0].set_title("loss, by steps", fontsize=10)
guess = torch.softmax(space["guess"].detach(), 1)[:, 1]
axes[1].plot(guess.numpy(), ".k", ms=3)
axes[1].plot(space["known"].numpy(), guess[space["known"]].numpy(), "or")
axes[1].set_title("second half? (red: told)", fontsize=10)
save("python-torch.png")

plt.figure(figsize=(5, 4))
_, colour = np.unique(space["clusters"], return_inverse=True)
plt.scatter(*space["points"].T, c=np.random.default_rng(4).permutation(colour.max() + 1)[colour], cmap="nipy_spectral", s=5)
plt.gca().set(xticks=[], yticks=[], aspect="equal")
plt.title(f"{colour.max() + 1} clusters of {len(colour):,} points", fontsize=10)
save("python-mcl.png")
