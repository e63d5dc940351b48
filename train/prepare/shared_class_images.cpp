#include "train/prepare/shared_class_images.h"

#include <algorithm>
#include <string>
#include <vector>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/sha256.h"
#include "train/dist/gather_json.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

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

// The files that this rank vouches for: index, size, hash.
Json own_files(const ProcessGroup& group, const ClassImagePlan& plan) {
  Json own = Json::array();
  for (std::size_t i = 0; i < plan.files.size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    const bool was_missing = std::binary_search(plan.missing.begin(), plan.missing.end(), index);
    const std::int64_t maker = was_missing ? index % group.world_size() : 0;
    if (maker == group.rank()) own.push_back({i, fs::file_size(plan.files[i]), sha256_of_file(plan.files[i])});
  }
  return own;
}

bool is_here(const fs::path& path, const SentFile& file) {
  try {
    return is_file(path) && sha256_of_file(path) == file.sha256;
  } catch (const DataError&) {  // on its way
    return false;
  }
}

}  // namespace

ClassImagePlan shared_plan(ProcessGroup& group, const ClassImageSet& set, const ClassImageSettings& settings) {
  if (group.world_size() == 1) return plan_class_images(set.folder, set.count, settings);
  Json json;
  if (group.is_first()) json = to_json(plan_class_images(set.folder, set.count, settings));
  group.barrier();  // the first rank reads every image that is there
  return from_json(gather_json(group, json).front(), set.folder);
}

void share_class_images(ProcessGroup& group, const ClassImagePlan& plan, const FileExchange& exchange) {
  if (group.world_size() == 1) return;
  const Json own = own_files(group, plan);
  group.barrier();
  std::vector<SentFile> files;
  std::vector<std::size_t> lacking;
  std::int64_t owner = 0;
  for (const Json& of_rank : gather_json(group, own)) {
    for (const Json& entry : of_rank) {
      const auto index = entry[0].get<std::size_t>();
      const fs::path& path = plan.files.at(index);
      files.push_back({path.filename().string(), entry[1].get<std::uint64_t>(), entry[2].get<std::string>(), owner,
                       static_cast<std::int64_t>(index) >= plan.own});
      if (owner != group.rank() && !is_here(path, files.back())) lacking.push_back(files.size() - 1);
    }
    ++owner;
  }
  group.barrier();  // every rank has read all of its files
  send_files(group, real_file_system(), files, lacking, exchange);
}

}  // namespace sdtune::train
