#include "app/commands/render_options.h"

#include <algorithm>
#include <utility>

namespace sdtune::app {
namespace {

namespace portrait = train::portrait;

constexpr std::int64_t kMaxSheetPixels = 100'000'000;  // 300 MB as the sheet is put together

FieldInfo field(std::string name, std::string help, std::string group) {
  return {.name = std::move(name), .help = std::move(help), .group = std::move(group)};
}

FieldInfo whole_number(std::string name, std::string help, std::string group, double min, double max) {
  FieldInfo info = field(std::move(name), std::move(help), std::move(group));
  info.min = min;
  info.max = max;
  return info;
}

void add_people_fields(RenderOptions& options, FieldList& list) {
  const std::string group = "People";
  FieldInfo set = field("set", "Which people: sets have none in common.", group);
  set.choices.assign(portrait::kPortraitSetNames.begin(), portrait::kPortraitSetNames.end());
  const auto people = static_cast<double>(portrait::people_in(portrait::PortraitSet::kTraining));
  const auto reserved = static_cast<double>(portrait::people_in(portrait::PortraitSet::kReserved));
  const auto views = static_cast<double>(portrait::kViewsOfPerson);
  list.push_back({std::move(set), &options.set});
  list.push_back({whole_number("seed", "Number of the first person in the set.", group, 0, people - 1), &options.seed});
  list.push_back({whole_number("count", "People to draw.", group, 1, people), &options.count});
  list.push_back(
      {whole_number("subject", "Photos of this reserved person, no sketches; stands for set, seed and count.", group, 0,
                    reserved - 1),
       &options.subject});
  list.push_back({whole_number("views", "Pictures of each person, each in another place and pose.", group, 1, views),
                  &options.views});
  list.push_back(
      {whole_number("first_view", "Number of each person's first picture.", group, 0, views - 1), &options.first_view});
}

void add_output_fields(RenderOptions& options, FieldList& list) {
  const std::string group = "Output";
  FieldInfo output = field("output", "Folder for pictures, captions and labels.jsonl.", group);
  output.aliases = {"output_dir"};
  output.placeholder = "DIR";
  FieldInfo size = whole_number("size", "Side of a picture.", group, 16, 1024);
  size.unit = "px";
  FieldInfo sheet = field("contact_sheet", "Also all pictures in one, a row a person where there are views.", group);
  sheet.placeholder = "FILE.png";
  FieldInfo config = field("config", "YAML file with options; flags win over it.", group);
  config.placeholder = "FILE.yaml";
  list.push_back({std::move(output), &options.output});
  list.push_back({std::move(size), &options.size});
  list.push_back({field("captions", "Write each picture's caption beside it, as .txt that train reads.", group),
                  &options.captions});
  list.push_back({std::move(sheet), &options.contact_sheet});
  list.push_back({whole_number("threads", "Threads that draw; none: one a core. Changes no picture.", group, 1, 256),
                  &options.threads});
  list.push_back({field("overwrite", "Replace what an earlier render wrote into the folder; other files stay.", group),
                  &options.overwrite});
  list.push_back({std::move(config), &options.config});
}

void check_subject(const train::Origins& origins, std::vector<Problem>& problems) {
  for (const char* name : {"set", "seed", "count"}) {
    if (origins.count(name) == 0) continue;
    problems.push_back({origins.at(name), "does not go with --subject, which stands for it",
                        "leave one out, or give --set reserved without --subject"});
  }
}

}  // namespace

FieldList RenderOptions::fields() {
  FieldList list;
  add_people_fields(*this, list);
  add_output_fields(*this, list);
  return list;
}

RenderPlan make_render_plan(const RenderOptions& options, const train::Origins& origins,
                            std::vector<Problem>& problems) {
  const auto& names = portrait::kPortraitSetNames;
  const auto name = std::find(names.begin(), names.end(), options.set);
  RenderPlan plan{static_cast<portrait::PortraitSet>(name - names.begin()), options.seed, options.count,
                  options.first_view, options.views};
  if (options.subject) {
    check_subject(origins, problems);
    plan.set = portrait::PortraitSet::kReserved;
    plan.first_person = *options.subject;
    plan.people = 1;
  }
  const auto people = static_cast<std::int64_t>(portrait::people_in(plan.set));
  if (plan.first_person + plan.people > people) {
    problems.push_back({"--count",
                        "goes beyond the set's last person (got person " + std::to_string(plan.first_person) + " and " +
                            std::to_string(plan.people) + " people; the set has " + std::to_string(people) + ")",
                        ""});
  }
  const auto views = static_cast<std::int64_t>(portrait::kViewsOfPerson);
  if (plan.first_view + plan.views > views) {
    problems.push_back({"--views",
                        "goes beyond a person's last picture (got " + std::to_string(plan.first_view) + " and " +
                            std::to_string(plan.views) + "; there are " + std::to_string(views) + ")",
                        ""});
  }
  // In doubles, which do not overflow.
  const double pixels = static_cast<double>(plan.people) * static_cast<double>(plan.views) *
                        static_cast<double>(options.size * options.size);
  if (!options.contact_sheet.empty() && pixels > static_cast<double>(kMaxSheetPixels)) {
    problems.push_back({"--contact-sheet",
                        "would have more than " + std::to_string(kMaxSheetPixels / 1'000'000) + " million pixels",
                        "draw fewer or smaller pictures for a sheet"});
  }
  return plan;
}

}  // namespace sdtune::app
