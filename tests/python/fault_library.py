"""A library that plants one fault into a rank: loaded before LibTorch, it takes the place of its collectives and of fsync."""

from __future__ import annotations

import subprocess
from pathlib import Path

# The product's calls into c10d go through a table that names these functions. In FAULT_CALL's call number FAULT_COUNT the library
# writes the file FAULT_MARK and does FAULT: a signal's number, `fail` (the call throws), `block` (it never returns, while the
# process lives) or `reset` (all connections of the process end). C++ functions get the address of their result first, so
# seven pointers pass all there is.
SOURCE = r"""
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

static void end_connections() {
  for (int file = 3; file < 1024; ++file) {
    sockaddr_storage address;
    socklen_t length = sizeof(address);
    if (getsockname(file, reinterpret_cast<sockaddr *>(&address), &length) != 0) continue;
    int listens = 0;  // no network ends a socket that listens
    socklen_t size = sizeof(listens);
    getsockopt(file, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size);
    if (!listens && (address.ss_family == AF_INET || address.ss_family == AF_INET6)) shutdown(file, SHUT_RDWR);
  }
}

static void meet_fault(const char *call) {
  static int count = 0;
  const char *wanted = getenv("FAULT_CALL");
  if (!wanted || strcmp(wanted, call) != 0) return;
  if (__sync_add_and_fetch(&count, 1) != atoi(getenv("FAULT_COUNT"))) return;
  close(open(getenv("FAULT_MARK"), O_CREAT | O_WRONLY, 0600));
  const char *fault = getenv("FAULT");
  if (strcmp(fault, "fail") == 0) throw std::runtime_error("planted: no route to host");
  if (strcmp(fault, "reset") == 0) return end_connections();
  while (strcmp(fault, "block") == 0) pause();
  kill(getpid(), atoi(fault));
}

#define COLLECTIVE(symbol, name)                                                                                 \
  extern "C" void *symbol(void *a, void *b, void *c, void *d, void *e, void *f, void *g) {                       \
    meet_fault(name);                                                                                            \
    using Function = void *(*)(void *, void *, void *, void *, void *, void *, void *);                          \
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, #symbol))(a, b, c, d, e, f, g);                           \
  }

COLLECTIVE(_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS3_EERKNS_16AllreduceOptionsE, "allreduce")
COLLECTIVE(_ZN4c10d16ProcessGroupGloo9broadcastERSt6vectorIN2at6TensorESaIS3_EERKNS_16BroadcastOptionsE, "broadcast")
COLLECTIVE(_ZN4c10d16ProcessGroupGloo9allgatherERSt6vectorIS1_IN2at6TensorESaIS3_EESaIS5_EERS5_RKNS_16AllgatherOptionsE, "allgather")
COLLECTIVE(_ZN4c10d16ProcessGroupGloo13alltoall_baseERN2at6TensorES3_RSt6vectorIlSaIlEES7_RKNS_15AllToAllOptionsE, "alltoall_base")

extern "C" int fsync(int file) {
  meet_fault("fsync");
  return reinterpret_cast<int (*)(int)>(dlsym(RTLD_NEXT, "fsync"))(file);
}
"""


def build_fault_library(folder: Path) -> Path:
    """The library, compiled into `folder`."""
    source, library = folder / "fault.cpp", folder / "fault.so"
    source.write_text(SOURCE)
    subprocess.run(["c++", "-std=c++17", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return library
