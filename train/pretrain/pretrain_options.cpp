#include "train/pretrain/pretrain_options.h"

#include <utility>

namespace sdtune::train::pretrain {

namespace {

FieldInfo field(std::string name, std::string help, std::string group = "Pretraining") {
  return {.name = std::move(name), .help = std::move(help), .group = std::move(group)};
}

FieldInfo number(std::string name, std::string help, double min, double max) {
  FieldInfo info = field(std::move(name), std::move(help));
  info.min = min;
  info.max = max;
  return info;
}

FieldInfo choice(std::string name, std::string help, std::vector<std::string> choices) {
  FieldInfo info = field(std::move(name), std::move(help));
  info.choices = std::move(choices);
  return info;
}

void add_stage(FieldList& list, const std::string& stage, const std::string& what, StageOptions& options) {
  const auto named = [&](const std::string& name, const std::string& help, const std::string& unit) {
    FieldInfo info = field(stage + "_" + name, help + " of " + what + ".", "Stages");
    info.unit = unit;
    info.min = 0;
    info.exclusive_min = true;
    return info;
  };
  list.push_back({named("steps", "Optimizer steps", "steps"), &options.steps});
  // The judge's is 32 people with all their views.
  if (stage != "judge") list.push_back({named("batch_size", "Pictures a step", ""), &options.batch_size});
  list.push_back({named("learning_rate", "Highest learning rate", ""), &options.learning_rate});
}

}  // namespace

FieldList PretrainOptions::fields() {
  FieldInfo folder = field("output", "Folder of the training: pictures, latents, checkpoints, and model/ at the end.");
  folder.placeholder = "DIR";
  FieldInfo time =
      number("minutes", "Stop and save after so long; the same command goes on; none: to the end.", 0, 1e6);
  time.unit = "min";
  time.exclusive_min = true;
  FieldInfo average = number("base_average_decay", "Decay of the averaged weights of the base.", 0, 1);
  FieldInfo gamma = number("snr_gamma", "Min-SNR weighting of the base's loss; none: off.", 0, 1000);
  gamma.exclusive_min = true;
  FieldInfo head =
      number("head_weight", "Weight of the base's error on the head, against 1 elsewhere; 1: off.", 0, 1000);
  head.exclusive_min = true;
  FieldInfo every = number("checkpointing_steps", "Steps between two checkpoints.", 1, 1e9);
  every.unit = "steps";
  FieldInfo examine = number("examine_steps", "Steps between two looks at what the base draws.", 1, 1e9);
  examine.unit = "steps";
  FieldList list;
  list.push_back({std::move(folder), &output});
  list.push_back({choice("stage", "What to train; figures: measure what is there, into figures.json.",
                         {"all", "vae", "judge", "text", "base", "figures"}),
                  &stage});
  list.push_back({choice("design", "Sizes of the networks; nano is for tests.", {"portrait", "nano"}), &design});
  list.push_back({std::move(time), &minutes});
  FieldInfo model = field("initial_model",
                          "Model to go on from in place of new weights; with --stage NAME its earlier stages are taken "
                          "as they are.");
  FieldInfo judge_folder = field("initial_judge", "Judge to go on from in place of new weights.");
  model.placeholder = judge_folder.placeholder = "DIR";
  list.push_back({std::move(model), &initial_model});
  list.push_back({std::move(judge_folder), &initial_judge});
  list.push_back({number("seed", "Seed of weights and draws.", 0, 1e14), &seed});
  FieldInfo where = field("device", "auto, cpu, cuda or cuda:N.");
  where.placeholder = "DEVICE";
  list.push_back({std::move(where), &device});
  list.push_back(
      {choice("mixed_precision", "auto: bf16 on a GPU, float32 on a CPU.", {"auto", "no", "bf16"}), &mixed_precision});
  list.push_back(
      {number("first_picture", "Number of the first picture: four are of one person, other numbers show other people.",
              0, 1e10),
       &first_picture});
  list.push_back({number("num_pictures", "Pictures that are rendered to train on.", 64, 1e8), &num_pictures});
  list.push_back({number("render_threads", "Threads that render; 0: one a core.", 0, 1024), &render_threads});
  add_stage(list, "vae", "the autoencoder", vae);
  add_stage(list, "judge", "the judge", judge);
  add_stage(list, "text", "the text encoder by itself", text);
  add_stage(list, "base", "the UNet and text encoder", base);
  list.push_back({std::move(average), &base_average_decay});
  list.push_back({std::move(gamma), &snr_gamma});
  list.push_back({std::move(head), &head_weight});
  list.push_back({std::move(every), &checkpointing_steps});
  list.push_back({std::move(examine), &examine_steps});
  list.push_back({number("figure_pictures",
                         "Pictures that prompts are measured on, and renders for the autoencoder; half as "
                         "many people, eight views each, for the judge.",
                         4, 1e6),
                  &figure_pictures});
  return list;
}

}  // namespace sdtune::train::pretrain
