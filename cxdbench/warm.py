"""`python -m cxdbench.warm`: compile the kernels into Numba's cache, so that the first curve comes at once."""
from cxdbench.device import Device
from cxdbench.run import run
from cxdbench.workload import Chase, Zipf


def warm() -> None:
    """Run one tiny run of each kind of address stream."""
    device = Device(cache_pages=16, capacity_pages=64)
    for workload in (Chase(accesses=100), Zipf(accesses=100)):
        run(device, workload)


if __name__ == "__main__":
    warm()
