// The options of `render`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/options/field.h"
#include "model/options/settings.h"
#include "train/portrait/renderer/portrait_set.h"
#include "train/portrait/scene/person.h"

namespace sdtune::app {

struct RenderOptions {
  std::string config;  // a YAML file with these options
  std::string output = "renders";
  std::string set = "training";
  std::int64_t seed = 0;                // the first person's number in the set
  std::int64_t count = 16;              // people
  std::optional<std::int64_t> subject;  // one reserved person, instead of set, seed and count
  std::int64_t views = 1;               // images of each person
  std::int64_t first_view = 0;
  std::int64_t size = 128;  // px
  std::string detail = "128";
  bool captions = true;
  std::string contact_sheet;            // a PNG file; empty: none
  std::optional<std::int64_t> threads;  // unset: one a core
  bool overwrite = false;
  bool json = false;

  FieldList fields();
};

// Which images are rendered: `people` people of `set` from number `first_person` on, each in views from `first_view`
// on.
struct RenderPlan {
  train::portrait::PortraitSet set = train::portrait::PortraitSet::kTraining;
  train::portrait::Detail detail = train::portrait::Detail::k64;
  std::int64_t first_person = 0, people = 0;
  std::int64_t first_view = 0, views = 0;

  std::int64_t images() const { return people * views; }
  std::int64_t person_of(std::int64_t image) const { return first_person + image / views; }
  std::int64_t view_of(std::int64_t image) const { return first_view + image % views; }
};

// The plan, or in `problems` why there is none: options that do not go together, people or views that do not exist, a
// contact sheet too large to be made in memory. `origins` says which options were given.
RenderPlan make_render_plan(const RenderOptions& options, const Origins& origins, std::vector<Problem>& problems);

}  // namespace sdtune::app
