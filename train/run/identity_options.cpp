#include "train/run/identity_options.h"

#include <utility>

namespace sdtune::train {

namespace {

FieldInfo field(std::string name, std::string help) {
  return {.name = std::move(name), .help = std::move(help), .group = "Likeness"};
}

FieldInfo count_field(std::string name, std::string help, double max) {
  FieldInfo info = field(std::move(name), std::move(help));
  info.min = 1;
  info.max = max;
  return info;
}

}  // namespace

FieldList IdentityOptions::fields() {
  FieldInfo every =
      count_field("identity_steps",
                  "Optimizer steps between two looks at likeness, prompt fidelity and leak, into "
                  "identity.jsonl; none: nobody looks. Needs a base of rendered people, or identity_model.",
                  1e7);
  every.unit = "steps";
  FieldInfo judge = field("identity_judge", "Folder of the judge that looks; empty: the installed one.");
  judge.placeholder = "DIR";
  FieldInfo network = field("identity_model",
                            "Face recognition network that looks instead of the judge, for any base and any photos: an "
                            "ArcFace or SFace .onnx file.");
  network.placeholder = "FILE";
  FieldInfo inference = count_field("identity_inference_steps", "Sampling steps of a picture of a look.", 1000);
  inference.unit = "steps";
  FieldInfo patience = count_field("early_stop_patience",
                                   "End the run once so many looks in a row found nothing better; none: it goes to its "
                                   "last step.",
                                   1e6);
  patience.unit = "looks";
  FieldList list;
  list.push_back({std::move(every), &identity_steps});
  list.push_back(
      {count_field("num_identity_images",
                   "Pictures of each subject at a look, in eight prompts by turns; half as many are drawn of "
                   "its class.",
                   256),
       &num_identity_images});
  list.push_back({std::move(inference), &identity_inference_steps});
  list.push_back({std::move(judge), &identity_judge});
  list.push_back({std::move(network), &identity_model});
  list.push_back(
      {field("keep_best", "Make model/ of the weights that the looks found best, not of the last ones."), &keep_best});
  list.push_back({std::move(patience), &early_stop_patience});
  return list;
}

}  // namespace sdtune::train
