// `sdtune push`: a model or LoRA to a Hugging Face hub, with a model card.
#include <algorithm>
#include <cstdio>

#include "app/cli/error_report.h"
#include "app/cli/print_json.h"
#include "app/commands/command.h"
#include "app/hub/hub_repository.h"
#include "app/hub/hub_upload.h"
#include "app/hub/hub_words.h"
#include "app/hub/model_card.h"
#include "app/hub/push_options.h"
#include "model/base/printable.h"
#include "model/files/file_system.h"
#include "model/files/hub_cache.h"

namespace sdtune::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCard = "README.md";
constexpr const char* kSheet = "images/sheet.png";

// What a commit says goes to the hub as JSON, which can hold no other text.
bool is_utf8_text(const std::string& text) {
  try {
    static_cast<void>(Json(text).dump());
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

void refuse_names(const std::vector<PushFile>& files) {
  std::vector<Problem> problems;
  for (const PushFile& file : files) {
    if (!is_utf8_text(file.path)) {
      problems.push_back({file.source.string(), "has a name that is not UTF-8, which a hub cannot store", "rename it"});
    }
  }
  if (!problems.empty()) throw ConfigError(problems);
}

class PushCommand : public Command {
 public:
  CommandHelp help() const override {
    return {"push",
            "Uploads a model or LoRA to a Hugging Face hub, with a model card.",
            "sdtune push RUN ORG/NAME [--dry-run] [options]",
            {{"run", "Run folder, or folder of a model or LoRA."}, {"id", "Name of the model on the hub: ORG/NAME."}}};
  }
  std::vector<std::string> positionals() const override { return {"RUN", "ORG/NAME"}; }
  FieldList fields() override { return options_.fields(); }

  int run(Arguments arguments) override {
    read_options(arguments);
    UploadRequest request{.id = id_, .revision = options_.revision, .message = options_.message, .files = {}};
    request.files = collect_files();
    refuse_names(request.files);
    for (const PushFile& file : request.files) {
      std::fprintf(stderr, "file     %s, %s\n", printable(file.path).c_str(), size_text(file.size).c_str());
    }
    if (options_.dry_run) {
      std::fprintf(stderr, "dry run  nothing is uploaded\n");
      if (options_.json) {
        print_report(request, "", "");
      } else {
        std::fputs(card_of(request.files).c_str(), stdout);
      }
      finish_output();
      return 0;
    }
    HubClient client(read_hub_settings(options_.retries));
    if (client.settings().token.empty()) {
      throw ConfigError("HF_TOKEN", "is not set, and an upload needs a token with the right to write",
                        "make one at " + client.settings().endpoint + "/settings/tokens");
    }
    require_repository(client, id_, options_.is_private);
    const std::string commit = upload_files(client, request);
    std::fprintf(stderr, "commit   %s\n", commit.empty() ? "not named by the hub" : printable(commit).c_str());
    const std::string url = client.settings().endpoint + "/" + id_;
    if (options_.json) {
      print_report(request, commit, url);
    } else {
      std::puts(url.c_str());
    }
    finish_output();
    return 0;
  }

 private:
  // `commit` and `url` are empty where nothing was uploaded.
  void print_report(const UploadRequest& request, const std::string& commit, const std::string& url) const {
    Json files = Json::array();
    for (const PushFile& file : request.files) files.push_back({{"file", file.path}, {"bytes", file.size}});
    print_json({{"id", id_},
                {"revision", options_.revision},
                {"uploaded", !options_.dry_run},
                {"commit", commit.empty() ? Json() : Json(commit)},
                {"url", url.empty() ? Json() : Json(url)},
                {"files", files},
                {"card", card_of(request.files)}});
  }

  void read_options(const Arguments& arguments) {
    std::vector<Problem> problems = arguments.problems;
    Origins unused;
    apply_settings(fields(), arguments.settings, unused, problems);
    if (arguments.positionals.size() != 2) {
      problems.push_back(
          {"push", "takes a run and a model's name (got " + std::to_string(arguments.positionals.size()) + " words)",
           "sdtune push runs/me ORG/NAME"});
    } else {
      run_ = arguments.positionals[0];
      id_ = arguments.positionals[1];
      if (!is_hub_id(id_)) problems.push_back({id_, "is no name of a model on a hub", "name it as ORG/NAME"});
    }
    if (!is_inner_path(options_.revision) || !is_utf8_text(options_.revision))
      problems.push_back({"--revision", "is no name (got " + options_.revision + ")", ""});
    if (!is_utf8_text(options_.message))
      problems.push_back({"--commit-message", "is not UTF-8 (got " + options_.message + ")", ""});
    if (!options_.sheet.empty() && !is_file(options_.sheet))
      problems.push_back({"--sheet", "is no file (got " + options_.sheet + ")", ""});
    if (!problems.empty()) throw ConfigError(problems);
  }

  // The model's files, the sheet, and the card unless the model's folder has one of its own.
  std::vector<PushFile> collect_files() const {
    const fs::path model = find_pushed_model(run_);
    std::vector<PushFile> files = push_files(model);
    const fs::path sheet = !options_.sheet.empty() ? fs::path(options_.sheet)
                           : options_.with_sheet   ? find_sheet(run_)
                                                   : fs::path();
    if (!sheet.empty()) {
      std::error_code error;
      files.push_back({.path = kSheet, .source = sheet, .text = {}, .size = fs::file_size(sheet, error)});
    }
    const bool has_card =
        std::any_of(files.begin(), files.end(), [](const PushFile& file) { return file.path == kCard; });
    if (has_card) return files;
    PushFile card{.path = kCard, .source = {}, .text = {}, .size = 0};
    card.text = model_card({.id = id_, .run = run_, .model = model, .sheet = sheet.empty() ? "" : kSheet});
    card.size = card.text.size();
    files.push_back(std::move(card));
    return files;
  }

  static std::string card_of(const std::vector<PushFile>& files) {
    for (const PushFile& file : files) {
      if (file.path == kCard) return file.source.empty() ? file.text : read_file(file.source);
    }
    return "";
  }

  PushOptions options_;
  fs::path run_;
  std::string id_;
};

}  // namespace

std::unique_ptr<Command> make_push_command() {
  return std::make_unique<PushCommand>();
}

}  // namespace sdtune::app
