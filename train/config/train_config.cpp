#include "train/config/train_config.h"

#include <iterator>
#include <utility>

namespace sdtune::train {

FieldList TrainConfig::fields() {
  FieldList list;
  const auto append = [&list](FieldList part) {
    list.insert(list.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
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
  return list;
}

}  // namespace sdtune::train
