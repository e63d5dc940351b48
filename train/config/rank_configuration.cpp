#include "train/config/rank_configuration.h"

#include "model/options/settings.h"

namespace sdtune::train {

std::string rank_configuration(TrainConfig config, bool on_gpu) {
  config.run.device = on_gpu ? "cuda" : "cpu";
  config.run.overwrite = false;
  config.checkpoint.resume_from_checkpoint = "";
  return config_to_yaml(config.fields(), {});
}

}  // namespace sdtune::train
