#include "train/prepare/shared_class_images.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/sha256.h"
#include "train/dist/gather_json.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLook{200};

Json to_json(const ClassImagePlan& plan) {
  Json json = {{"files", Json::array()}, {"missing", plan.missing}, {"own", plan.own}};
  for (const fs::path& file : plan.files) json["files"].push_back(file.filename().string());
  return json;
}

ClassImagePlan from_json(const Json& json, const fs::path& folder) {
  ClassImagePlan plan;
  for (const Json& name : json.at("files")) plan.files.push_back(folder / name.get<std::string>());
  plan.missing = json.at("missing").get<std::vector<std::int64_t>>();
  plan.own = json.at("own").get<std::int64_t>();
  return plan;
}

// The files that this rank vouches for, by index, with their hashes.
Json own_hashes(const ProcessGroup& group, const ClassImagePlan& plan) {
  Json hashes = Json::array();
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const bool was_missing = std::binary_search(plan.missing.begin(), plan.missing.end(), index);
    const std::int64_t maker = was_missing ? index % group.world_size() : 0;
    if (maker == group.rank()) hashes.push_back({i, sha256_of_file(plan.files[i])});
  }
  return hashes;
}

bool is_here(const fs::path& file, const std::string& hash) {
  try {
    return is_file(file) && sha256_of_file(file) == hash;
  } catch (const DataError&) {  // on its way
    return false;
  }
}

// Those that are not here with their content after `timeout`.
std::vector<fs::path> await_files(std::vector<std::pair<fs::path, std::string>> wanted,
                                  std::chrono::duration<double> timeout) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    std::erase_if(wanted, [](const auto& file) { return is_here(file.first, file.second); });
    if (wanted.empty() || std::chrono::steady_clock::now() - start > timeout) break;
    std::this_thread::sleep_for(kLook);
  }
  std::vector<fs::path> late;
  for (const auto& [file, hash] : wanted) late.push_back(file);
  return late;
}

}  // namespace

ClassImagePlan shared_plan(ProcessGroup& group, const ClassImageSet& set, const ClassImageSettings& settings) {
  if (group.world_size() == 1) return plan_class_images(set.folder, set.count, settings);
  Json json;
  if (group.is_first()) json = to_json(plan_class_images(set.folder, set.count, settings));
  group.barrier();  // the first rank reads every image that is there
  return from_json(gather_json(group, json).front(), set.folder);
}

void await_class_images(ProcessGroup& group, const ClassImagePlan& plan, std::chrono::duration<double> timeout) {
  if (group.world_size() == 1) return;
  const Json own = own_hashes(group, plan);
  group.barrier();
  const std::vector<Json> of_ranks = gather_json(group, own);
  std::vector<std::pair<fs::path, std::string>> wanted;
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    if (static_cast<std::int64_t>(rank) == group.rank()) continue;
    for (const Json& entry : of_ranks[rank]) {
      wanted.emplace_back(plan.files.at(entry[0].get<std::size_t>()), entry[1].get<std::string>());
    }
  }
  const std::vector<fs::path> late = await_files(std::move(wanted), timeout);
  group.barrier();
  const Json mine = late.empty() ? Json() : Json{late.front().string(), late.size()};
  const std::vector<Json> answers = gather_json(group, mine);
  for (std::size_t rank = 0; rank < answers.size(); ++rank) {
    const Json& answer = answers[rank];
    if (answer.is_null()) continue;
    throw DataError(answer[0].get<std::string>(),
                    "rank " + std::to_string(rank) + " does not see this class image as another rank has it, after " +
                        std::to_string(std::lround(timeout.count())) + " s (" +
                        std::to_string(answer[1].get<std::int64_t>()) + " such files)",
                    "all ranks must share class_data_dir");
  }
}

}  // namespace sdtune::train
