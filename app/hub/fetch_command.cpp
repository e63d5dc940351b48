// `sdtune fetch`: a model of a Hugging Face hub into the cache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "app/cli/error_report.h"
#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "app/hub/blob_download.h"
#include "app/hub/fetch_options.h"
#include "app/hub/hub_words.h"
#include "app/hub/pipeline_files.h"
#include "app/ui/terminal.h"
#include "model/base/printable.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndex = "model_index.json";
constexpr std::uint64_t kLargestIndex = 1 << 20;

class FetchCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"fetch",
            "Downloads a model of a Hugging Face hub into its cache.",
            "sdtune fetch ORG/NAME [--file FILE] [options]",
            {{"id", "Name of the model on the hub: ORG/NAME."}}};
  }
  std::vector<std::string> positionals() const override { return {"ORG/NAME"}; }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    HubClient client(read_hub_settings(options_.retries));
    const HubRepository repository = read_hub_repository(client, id_, options_.revision);
    std::fprintf(stderr, "model    %s, commit %s\n", id_.c_str(), repository.commit.c_str());
    std::fprintf(stderr, "licence  %s\n",
                 repository.licence.empty() ? ("none is named: see " + client.settings().endpoint + "/" + id_).c_str()
                                            : printable(repository.licence).c_str());
    const fs::path cache = options_.cache_dir.empty() ? hub_cache_folder() : fs::path(options_.cache_dir);
    const CacheFolder folder(cache, id_);
    std::vector<fs::path> places;
    for (const std::string& file : options_.files) places.push_back(fetch_file(client, repository, folder, file));
    if (places.empty()) places.push_back(fetch_pipeline(client, repository, folder));
    folder.write_reference(options_.revision, repository.commit);
    print(repository, places);
    finish_output();
    return 0;
  }

 private:
  void print(const HubRepository& repository, const std::vector<fs::path>& places) const {
    if (!options_.json) {
      for (const fs::path& place : places) std::puts(place.c_str());
      return;
    }
    Json paths = Json::array();
    for (const fs::path& place : places) paths.push_back(place.string());
    print_json({{"id", id_},
                {"revision", options_.revision},
                {"commit", repository.commit},
                {"licence", repository.licence.empty() ? Json() : Json(repository.licence)},
                {"paths", paths},
                {"files", files_}});
  }

  void read_options(const Arguments& arguments) {
    std::vector<Problem> problems = arguments.problems;
    Origins unused;
    apply_settings(fields(), arguments.settings, unused, problems);
    id_ = arguments.positionals.size() == 1 ? arguments.positionals.front() : "";
    if (id_.empty()) {
      problems.push_back({"fetch", "takes one model (got " + std::to_string(arguments.positionals.size()) + ")",
                          "name it as ORG/NAME"});
    } else if (!is_hub_id(id_)) {
      problems.push_back({id_, "is no name of a model on a hub", "name it as ORG/NAME"});
    }
    if (!is_inner_path(options_.revision))
      problems.push_back({"--revision", "is no name (got " + options_.revision + ")", ""});
    for (const std::string& file : options_.files) {
      if (!is_inner_path(file)) problems.push_back({"--file", "is no file of a repository (got " + file + ")", ""});
    }
    if (!options_.files.empty() && (!options_.variant.empty() || !options_.without.empty())) {
      problems.push_back(
          {"--file", "is given beside --variant or --without, which choose among many", "leave one out"});
    }
    if (!problems.empty()) throw ConfigError(problems);
  }

  fs::path fetch_pipeline(HubClient& client, const HubRepository& repository, const CacheFolder& folder) {
    const std::vector<std::string>& there = repository.files;
    if (std::find(there.begin(), there.end(), kIndex) == there.end()) refuse_no_pipeline(repository);
    const fs::path index = fetch_file(client, repository, folder, kIndex);
    const Json components = parse_json(read_file(index, kLargestIndex), index.string());
    if (!components.is_object()) throw WeightError(index.string(), "must be an object");
    for (const std::string& file : pipeline_files(there, components, options_.variant, options_.without, id_)) {
      if (file != kIndex) fetch_file(client, repository, folder, file);
    }
    return folder.snapshot(repository.commit);
  }

  [[noreturn]] void refuse_no_pipeline(const HubRepository& repository) const {
    std::vector<std::string> some;
    for (const std::string& file : repository.files) {
      if (file.ends_with(".safetensors") && some.size() < 5) some.push_back(file);
    }
    throw ConfigError(id_, "is no diffusers pipeline: it has no model_index.json",
                      some.empty() ? "name one file with --file"
                                   : fmt::format("name one file with --file, such as {}", fmt::join(some, ", ")));
  }

  fs::path fetch_file(HubClient& client, const HubRepository& repository, const CacheFolder& folder,
                      const std::string& file) {
    const HubFile expected = read_hub_file(client, repository, file);
    const bool shows = is_terminal(stderr);
    auto shown = std::chrono::steady_clock::now();
    const auto listen = [&](std::uint64_t bytes) {
      const auto now = std::chrono::steady_clock::now();
      if (!shows || now - shown < std::chrono::milliseconds(200)) return;
      shown = now;
      std::fprintf(stderr, "\r%3.0f %%    %s\x1b[K", 100.0 * bytes / expected.size, printable(file).c_str());
    };
    const bool is_new = download_blob(client, repository, file, expected, folder, listen);
    std::fprintf(stderr, "%s%s  %s, %s\n", shows ? "\r\x1b[K" : "", is_new ? "fetched" : "is there",
                 printable(file).c_str(), size_text(expected.size).c_str());
    const fs::path link = folder.link(repository.commit, file, expected.hash);
    files_.push_back({{"file", file}, {"bytes", expected.size}, {"path", link.string()}, {"downloaded", is_new}});
    return link;
  }

  FetchOptions options_;
  std::string id_;
  Json files_ = Json::array();  // of the report
};

}  // namespace

std::unique_ptr<Command> make_fetch_command() {
  return std::make_unique<FetchCommand>();
}

}  // namespace sdtune::app
