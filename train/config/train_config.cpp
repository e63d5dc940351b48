#include "train/config/train_config.h"

namespace sdtune::train {

FieldList TrainConfig::fields() {
  FieldList list;
  const auto append = [&list](const TrainFieldList& part) {
    const FieldList& fields = part;
    list.insert(list.end(), fields.begin(), fields.end());
  };
  append(run.fields());
  append(lora.fields());
  append(data.fields());
  append(objective.fields());
  append(optim.fields());
  append(precision.fields());
  append(checkpoint.fields());
  append(observe.fields());
  append(identity.fields());
  append(dist.fields());
  append(rental.fields());
  return list;
}

}  // namespace sdtune::train
