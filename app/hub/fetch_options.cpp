#include "app/hub/fetch_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList FetchOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Fetch");
  group
      .add("file", &files,
           "Only this file of the repository, of any kind, given once a file; none: all that a pipeline needs.")
      .aliases({"filename"})
      .placeholder("FILE");
  group.add("revision", &revision, "Branch, tag or commit.").placeholder("NAME");
  group
      .add("variant", &variant,
           "Weights of this variant, such as fp16, where a component has them; empty: the plain ones.")
      .placeholder("NAME");
  group
      .add(
          "without", &without,
          "Component to leave out, given once a component: safety_checker saves 1.2 GB with SD 1.5, and diffusers then "
          "needs safety_checker=None.")
      .placeholder("COMPONENT");
  group
      .add("cache_dir", &cache_dir,
           "Cache to write to; empty: HF_HUB_CACHE, HF_HOME/hub, else ~/.cache/huggingface/hub.")
      .placeholder("DIR");
  group.add("retries", &retries, "Tries after a failed connection, when no byte came in between.").range(0, 100);
  group.add("json", &json, "Print the result as one JSON object.");
  return list;
}

}  // namespace sdtune::app
