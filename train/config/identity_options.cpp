#include "train/config/identity_options.h"

namespace sdtune::train {

TrainFieldList IdentityOptions::fields() {
  TrainFieldList list;
  TrainOptionGroup group(list, "Identity evaluation");
  group
      .add("identity_steps", &identity_steps, Resume::kMayChange,
           "Optimizer steps between identity evaluations (likeness, prompt fidelity, leakage), written to "
           "identity.jsonl; unset: disabled. Needs a base of rendered people or identity_model.")
      .unit("steps")
      .range(1, 1e7);
  group
      .add("num_identity_images", &num_identity_images, Resume::kMayChange,
           "Images of each subject per identity evaluation, from eight prompts in turn; half as many are generated "
           "of the class.")
      .range(1, 256);
  group
      .add("identity_inference_steps", &identity_inference_steps, Resume::kMayChange,
           "Sampling steps of an image of an identity evaluation.")
      .unit("steps")
      .range(1, 1000);
  group
      .add("identity_classifier", &identity_classifier, Resume::kMayChange,
           "Portrait classifier that evaluates identity: a folder, portrait-judge or portrait-judge-128; empty: "
           "portrait-judge, or the base's.")
      .aliases({"identity_judge"})
      .placeholder("DIR");
  group
      .add("identity_model", &identity_model, Resume::kMayChange,
           "Face recognition network to use instead of the portrait classifier, for any base and any photos: an "
           "ArcFace or SFace .onnx file.")
      .placeholder("FILE");
  group.add("keep_best", &keep_best, Resume::kMayChange,
            "Export the weights of the best identity evaluation to model/ instead of the last weights.");
  group
      .add("early_stop_patience", &early_stop_patience, Resume::kMayChange,
           "End the run after this many identity evaluations in a row without improvement; unset: disabled.")
      .unit("evaluations")
      .range(1, 1e6);
  return list;
}

}  // namespace sdtune::train
