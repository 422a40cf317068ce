"""The modelled device: Numba kernels in virtual time. `README.md` beside this file says exactly what they do."""
