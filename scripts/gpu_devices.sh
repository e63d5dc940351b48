# Read by setup.sh and demo.sh: whether this machine shows an NVIDIA GPU, however old its driver is. /dev/dxg is WSL's.
# SDTUNE_SYSTEM_ROOT replaces / for tests.
has_gpu_device() {
  [ -e "${SDTUNE_SYSTEM_ROOT:-}/dev/nvidiactl" ] || [ -e "${SDTUNE_SYSTEM_ROOT:-}/dev/dxg" ]
}
