// Stands for NVIDIA's driver library, libcuda.so.1, as far as sdtune asks it itself (model/core/cuda_driver.cpp), so that a
// machine without a GPU can be any other. tests/python/driver_stub.py compiles it.
//
//   SDTUNE_STUB_GPUS   "NVIDIA L4=8.9;NVIDIA T4=7.5": names and compute capabilities; unset or "": none
//   SDTUNE_STUB_CUDA   the newest CUDA it supports, as the driver counts: 13000
//   SDTUNE_STUB_MEMORY bytes of each GPU; 24 GiB by default
//   SDTUNE_STUB_INIT   what cuInit returns; 0 by default, 100 where there is no GPU
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* setting(const char* name) {
  const char* value = getenv(name);
  return value == NULL ? "" : value;
}

// The entry of GPU `index` in SDTUNE_STUB_GPUS, or NULL.
static const char* entry(int index) {
  const char* at = setting("SDTUNE_STUB_GPUS");
  for (; *at != '\0' && index > 0; --index) {
    at = strchr(at, ';');
    if (at == NULL) return NULL;
    ++at;
  }
  return *at == '\0' ? NULL : at;
}

int cuDeviceGetCount(int* count) {
  *count = 0;
  while (entry(*count) != NULL) ++*count;
  return 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  const char* given = setting("SDTUNE_STUB_INIT");
  int count = 0;
  if (*given != '\0') return atoi(given);
  cuDeviceGetCount(&count);
  return count == 0 ? 100 : 0;
}

int cuDriverGetVersion(int* version) {
  *version = atoi(setting("SDTUNE_STUB_CUDA"));
  return 0;
}

int cuGetErrorString(int status, const char** text) {
  *text = status == 100 ? "no CUDA-capable device is detected" : "system not yet initialized";
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return entry(index) == NULL ? 101 : 0;
}

int cuDeviceGetName(char* name, int length, int device) {
  const char* at = entry(device);
  snprintf(name, (size_t)length, "%.*s", (int)(strchr(at, '=') - at), at);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  (void)device;
  const char* given = setting("SDTUNE_STUB_MEMORY");
  *bytes = *given == '\0' ? (size_t)24 << 30 : (size_t)strtoull(given, NULL, 10);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  int major = 0;
  int minor = 0;
  sscanf(strchr(entry(device), '=') + 1, "%d.%d", &major, &minor);
  *value = attribute == 75 ? major : attribute == 76 ? minor : 0;
  return 0;
}
