// The one file that sees Gloo's headers. They are Debian's, the library is the one inside LibTorch: never construct
// GlooStore here, its layout differs between the two.
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include <cstdlib>

#include "train/dist/backend.h"

namespace sdtune::train {

c10::intrusive_ptr<c10d::Backend> make_gloo_backend(const BackendRequest& request) {
  auto options = c10d::ProcessGroupGloo::Options::create(request.timeout);
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  options->devices.push_back(interface != nullptr && *interface != '\0'
                                 ? c10d::ProcessGroupGloo::createDeviceForInterface(interface)
                                 : c10d::ProcessGroupGloo::createDefaultDevice());
  return c10::make_intrusive<c10d::ProcessGroupGloo>(request.store, static_cast<int>(request.rank),
                                                     static_cast<int>(request.world_size), options);
}

}  // namespace sdtune::train
