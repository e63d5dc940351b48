#include "app/prove/prove_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList ProveOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Prove");
  group.add("base", &base, "Model folder or hub id to train in the proof; empty: the bundled base.")
      .placeholder("DIR|ID");
  group.add("images", &images, "Folder of photos for the DreamBooth run.").placeholder("DIR");
  group.add("device", &device, "Where to compute: auto, cpu, cuda or cuda:N.");
  group.add("against", &against, "Also compare with this library, in a Python that has it (SDTUNE_PYTHON names one).")
      .choices({"diffusers"});
  group.add("output", &output, "Folder for results; a second call with the same folder continues.")
      .aliases({"output_dir"})
      .placeholder("DIR");
  group.add("parts", &parts,
            "Do this part only, given once a part: kernels, parity_fp32, parity_bf16, parity_fp16, graphs, ranks, "
            "dreambooth, plan, diffusers; none: all.");
  group.add("minutes", &minutes, "Time of this call; what is left then is done by the next. Unset: until all is done.")
      .above(0)
      .unit("min");
  group.add("steps", &steps, "Optimizer steps of the DreamBooth run; unset: 200 on a GPU, 60 on a CPU.")
      .range(4, 100000)
      .unit("steps");
  group.add("json", &json, "Print the report as one JSON object.");
  return list;
}

}  // namespace sdtune::app
