// The one file that sees Gloo's headers. They are Debian's, the library is the one inside LibTorch: never construct
// GlooStore here, its layout differs between the two.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "train/dist/backend.h"
#include "train/dist/network_interfaces.h"

namespace sdtune::train {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const BackendRequest& request) {
  auto options = c10d::ProcessGroupGloo::Options::create(request.timeout);
  for (const std::string& name : gloo_interfaces()) {
    options->devices.push_back(c10d::ProcessGroupGloo::createDeviceForInterface(name));
  }
  if (options->devices.empty()) options->devices.push_back(c10d::ProcessGroupGloo::createDefaultDevice());
  return c10::make_intrusive<c10d::ProcessGroupGloo>(request.store, static_cast<int>(request.rank),
                                                     static_cast<int>(request.world_size), options);
}

}  // namespace sdtune::train
