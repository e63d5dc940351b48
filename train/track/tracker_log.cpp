#include "train/track/tracker_log.h"

#include <utility>

#include "model/files/json_file.h"
#include "model/options/option_schema.h"
#include "model/options/settings.h"
#include "train/config/run_folder.h"
#include "train/config/train_config.h"
#include "train/observe/event_record.h"
#include "train/observe/preview.h"
#include "train/track/tracker_check.h"

namespace sdtune::train {

namespace {

constexpr const char* kIds = "trackers.json";
constexpr const char* kLog = "trackers.log";
constexpr const char* kGoesOn = "training continues without it";

// The options that the run resolved to, as its config.yaml has them.
Json recorded_options(const std::filesystem::path& folder) {
  TrainConfig config;
  const FieldList fields = config.fields();
  std::vector<Problem> ignored;
  Origins unused;
  apply_settings(fields, settings_from_yaml(folder / "config.yaml", ignored), unused, ignored);
  Json options = Json::object();
  for (const Field& field : fields) options[field.info.name] = field_json(field);
  return options;
}

// What an earlier attempt kept; nothing where it is missing or damaged.
Json known_ids(const std::filesystem::path& folder, const RunSummary& summary) {
  if (summary.attempt <= 1 && summary.first_step == 0) return Json::object();
  try {
    Json ids = read_json(folder / kIds);
    return ids.is_object() ? ids : Json::object();
  } catch (const Error&) {
    return Json::object();
  }
}

}  // namespace

TrackerLog::TrackerLog(const ObserveOptions& options, FileSystem& files, Warn warn)
    : options_(options), files_(files), warn_(std::move(warn)) {}

void TrackerLog::on_start(const RunSummary& summary) {
  folder_ = std::filesystem::absolute(summary.output).lexically_normal();
  try {
    start(summary);
  } catch (const Error& error) {
    say(error.problems().front().line(), kGoesOn);
  }
}

void TrackerLog::start(const RunSummary& summary) {
  std::vector<Problem> problems;
  const std::vector<std::string> words = script_words("tracker_process.py", "report_to", problems);
  if (!problems.empty()) return;  // `all` on a machine without Python; anything else was refused before
  ids_ = known_ids(folder_, summary);
  process_ = std::make_unique<ScriptProcess>(words, folder_ / kLog);
  send(start_message(summary));
}

Json TrackerLog::start_message(const RunSummary& summary) const {
  const SideTrackers trackers = side_trackers(options_);
  const std::string own_name = options_.tracker_run_name;
  return {{"type", "start"},
          {"trackers", trackers.names},
          {"optional", trackers.optional},
          {"project", options_.tracker_project_name},
          {"name", own_name.empty() ? RunFolder{folder_}.name() : own_name},
          {"folder", folder_.string()},
          {"config", recorded_options(folder_)},
          {"ids", ids_},
          {"first_step", summary.first_step},
          {"attempt", summary.attempt}};
}

void TrackerLog::on_step(const StepEvent& event) {
  if (!process_) return;
  Json values = {{"epoch", event.epoch}};
  for (const auto& [name, value] : step_values(event)) values[name] = value;
  send_scalars(event.step, event.time, values);
}

void TrackerLog::on_validation(const ValidationEvent& event) {
  if (!process_) return;
  if (event.loss) send_scalars(event.step, unix_time(), {{"validation_loss", *event.loss}});
  if (event.images.empty()) return;
  const std::filesystem::path folder = preview_folder(folder_ / "samples", event.step);
  Json images = Json::array();
  for (std::size_t i = 0; i < event.images.size(); ++i) {
    const std::string seed = std::to_string(event.seeds.at(i));
    images.push_back({{"name", "validation/" + std::to_string(i)},
                      {"path", (folder / preview_name(i, event.seeds.at(i))).string()},
                      {"caption", event.prompts.at(i) + " (seed " + seed + ")"}});
  }
  send({{"type", "images"}, {"step", event.step}, {"images", images}});
}

void TrackerLog::on_identity(const IdentityEvent& event) {
  if (!process_) return;
  send_scalars(event.step, unix_time(),
               {{"likeness/identity", event.identity},
                {"likeness/accepted", event.accepted},
                {"likeness/prompt_fidelity", event.prompt_fidelity},
                {"likeness/leak", event.leak},
                {"likeness/score", event.score}});
}

void TrackerLog::on_end(const EndEvent& event) {
  if (!process_) return;
  const std::string model =
      options_.report_model && !event.model_path.empty() ? std::filesystem::absolute(event.model_path).string() : "";
  const Json end = {{"type", "end"}, {"code", static_cast<int>(event.code)}, {"cause", event.cause}, {"model", model}};
  ++(process_->send_last(end) ? sent_ : lost_);
  const bool is_over = process_->wait(options_.tracker_timeout);
  read_replies();
  const std::int64_t missing = sent_ + lost_ - done_;
  if (missing > 0) {
    say(std::to_string(missing) + " of " + std::to_string(sent_ + lost_) + " events were not delivered" +
            (is_over ? "" : " within tracker_timeout"),
        "the run itself is as it should be; metrics.jsonl and samples/ hold all of it, trackers.log what the packages "
        "printed");
  }
  process_.reset();
}

void TrackerLog::send_scalars(std::int64_t step, double time, const Json& values) {
  send({{"type", "scalars"}, {"step", step}, {"time", time}, {"values", values}});
}

void TrackerLog::send(const Json& message) {
  ++(process_->send(message) ? sent_ : lost_);
  read_replies();
}

void TrackerLog::read_replies() {
  for (const Json& reply : process_->replies()) take(reply);
  if (process_->is_gone() && done_ < sent_ + lost_) say_once_that_it_is_gone();
}

void TrackerLog::take(const Json& reply) {
  if (reply.contains("done")) done_ = reply["done"].get<std::int64_t>();
  if (reply.contains("id")) keep_id(reply["id"].at(0).get<std::string>(), reply["id"].at(1).get<std::string>());
  if (reply.contains("warn")) {
    say(reply["warn"].at(0).get<std::string>() + ": " + reply["warn"].at(1).get<std::string>(),
        "training continues; metrics.jsonl holds all values");
  }
  if (reply.contains("lost")) {
    say(reply["lost"].at(0).get<std::string>() + ": " + std::to_string(reply["lost"].at(1).get<std::int64_t>()) +
            " events were not delivered",
        "trackers.log in the run folder says more");
  }
}

void TrackerLog::keep_id(const std::string& tracker, const std::string& id) {
  const auto known = ids_.find(tracker);  // not a text where the file was edited: then it is replaced
  if (known != ids_.end() && *known == id) return;
  ids_[tracker] = id;
  try {
    write_file_atomically(files_, folder_ / kIds, ids_.dump(2) + "\n");
  } catch (const Error& error) {
    say(error.problems().front().line(), "a resumed run begins a new one in " + tracker);
  }
}

void TrackerLog::say(const std::string& what, const std::string& hint) const {
  if (warn_) warn_({"report_to", what, hint});
}

void TrackerLog::say_once_that_it_is_gone() {
  if (std::exchange(said_gone_, true)) return;
  say("the side process has ended", "training continues; trackers.log in the run folder says more");
}

}  // namespace sdtune::train
