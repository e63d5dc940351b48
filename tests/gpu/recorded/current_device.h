// Which of the recorded GPUs is a thread's own: what LibTorch and CUDA's runtime both ask.
#pragma once

namespace sdtune::record {

// As many as the stub of the driver lists (SDTUNE_STUB_GPUS).
int device_count();
int current_device();
void set_current_device(int index);

}  // namespace sdtune::record
