#include "app/commands/render_options.h"

#include <algorithm>

#include "model/options/option_group.h"

namespace sdtune::app {
namespace {

namespace portrait = train::portrait;

constexpr std::int64_t kMaxSheetPixels = 100'000'000;  // 300 MB as the sheet is put together

void add_people(OptionGroup group, RenderOptions& options) {
  const auto people = static_cast<double>(portrait::people_in(portrait::PortraitSet::kTraining));
  const auto reserved = static_cast<double>(portrait::people_in(portrait::PortraitSet::kReserved));
  const auto views = static_cast<double>(portrait::kViewsOfPerson);
  group.add("set", &options.set, "Set of people; no person is in two sets.")
      .choices({portrait::kPortraitSetNames.begin(), portrait::kPortraitSetNames.end()});
  group.add("seed", &options.seed, "Number of the first person in the set.").range(0, people - 1);
  group.add("count", &options.count, "Number of people to render.").range(1, people);
  group
      .add("subject", &options.subject,
           "Render photos of this reserved person, no sketches; replaces set, seed and count.")
      .range(0, reserved - 1);
  group.add("views", &options.views, "Images of each person, each in another place and pose.").range(1, views);
  group.add("first_view", &options.first_view, "Number of each person's first image.").range(0, views - 1);
}

void add_render_output(OptionGroup group, RenderOptions& options) {
  group.add("output", &options.output, "Folder for images, captions and labels.jsonl.")
      .aliases({"output_dir"})
      .placeholder("DIR");
  group.add("size", &options.size, "Side of an image.").unit("px").range(16, 1024);
  group
      .add("detail", &options.detail,
           "How much is modelled: 128, for 128 px and more (eyelids, strands of hair, wrinkles, heads that turn by 35 "
           "degrees), whom the bundled base portrait-128 knows; 64: the simpler people of portrait-64.")
      .choices({"64", "128"});
  group.add("captions", &options.captions, "Write each image's caption beside it, as the .txt file that train reads.");
  group
      .add("contact_sheet", &options.contact_sheet,
           "Also write all images as one; with several views a row is a person.")
      .placeholder("FILE.png");
  group.add("threads", &options.threads, "Threads for rendering; unset: one per core. Changes no image.").range(1, 256);
  group.add("overwrite", &options.overwrite, "Replace the files of an earlier render in the folder; other files stay.");
  group.add("json", &options.json, "Print the result as one JSON object.");
  group.add("config", &options.config, "YAML file with options; flags override it.").placeholder("FILE.yaml");
}

void check_subject(const Origins& origins, std::vector<Problem>& problems) {
  for (const char* name : {"set", "seed", "count"}) {
    if (origins.count(name) == 0) continue;
    problems.push_back({origins.at(name), "contradicts --subject, which replaces it",
                        "leave one out, or give --set reserved without --subject"});
  }
}

}  // namespace

FieldList RenderOptions::fields() {
  FieldList list;
  add_people({list, "People"}, *this);
  add_render_output({list, "Output"}, *this);
  return list;
}

RenderPlan make_render_plan(const RenderOptions& options, const Origins& origins, std::vector<Problem>& problems) {
  const auto& names = portrait::kPortraitSetNames;
  const auto name = std::find(names.begin(), names.end(), options.set);
  const bool fine = options.detail == "128";
  RenderPlan plan{static_cast<portrait::PortraitSet>(name - names.begin()),
                  fine ? portrait::Detail::k128 : portrait::Detail::k64,
                  options.seed,
                  options.count,
                  options.first_view,
                  options.views};
  if (options.subject) {
    check_subject(origins, problems);
    plan.set = portrait::PortraitSet::kReserved;
    plan.first_person = *options.subject;
    plan.people = 1;
  }
  const auto people = static_cast<std::int64_t>(portrait::people_in(plan.set));
  if (plan.first_person + plan.people > people) {
    problems.push_back({"--count",
                        "is beyond the last person of the set (got person " + std::to_string(plan.first_person) +
                            " and " + std::to_string(plan.people) + " people; the set has " + std::to_string(people) +
                            ")",
                        ""});
  }
  const auto views = static_cast<std::int64_t>(portrait::kViewsOfPerson);
  if (plan.first_view + plan.views > views) {
    problems.push_back({"--views",
                        "is beyond the last image of a person (got " + std::to_string(plan.first_view) + " and " +
                            std::to_string(plan.views) + "; there are " + std::to_string(views) + ")",
                        ""});
  }
  // In doubles, which do not overflow.
  const double pixels = static_cast<double>(plan.people) * static_cast<double>(plan.views) *
                        static_cast<double>(options.size * options.size);
  if (!options.contact_sheet.empty() && pixels > static_cast<double>(kMaxSheetPixels)) {
    problems.push_back({"--contact-sheet",
                        "would have more than " + std::to_string(kMaxSheetPixels / 1'000'000) + " million pixels",
                        "render fewer or smaller images for a sheet"});
  }
  return plan;
}

}  // namespace sdtune::app
