"""The device on real memory: real page faults in this process, through libcxd (kmod/user) by ctypes."""
