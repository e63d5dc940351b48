#include "app/hub/push_options.h"

#include "model/options/option_group.h"

namespace sdtune::app {

FieldList PushOptions::fields() {
  FieldList list;
  OptionGroup group(list, "Push");
  group.add("private", &is_private,
            "Only the owner sees the model; --no-private makes a new one public. Nothing is uploaded to a public model "
            "without it.");
  group.add("revision", &revision, "Branch to commit to.").placeholder("NAME");
  group.add("commit_message", &message, "First line of the commit.").placeholder("TEXT");
  group.add("sheet", &sheet, "Image for the model card; empty: the run's last validation images.")
      .placeholder("FILE.png");
  group.add("with_sheet", &with_sheet, "Put generated images into the model card.");
  group.add("dry_run", &dry_run, "List the files and print the model card, without a connection.");
  group.add("retries", &retries, "Tries after a failed request.").range(0, 100);
  group.add("json", &json, "Print the result as one JSON object.");
  return list;
}

}  // namespace sdtune::app
