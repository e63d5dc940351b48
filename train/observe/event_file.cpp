#include "train/observe/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <utility>

#include "train/observe/event_record.h"
#include "train/observe/metrics_log.h"
#include "train/observe/preview.h"

namespace sdtune::train {

namespace {

// TensorBoard reads the files of a folder in the order of their names, so attempts must sort by time.
std::string file_name(double time) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0 || host[0] == '\0') host = {"localhost"};
  return fmt::format("events.out.tfevents.{:017.6f}.{}.{}", time, host.data(), ::getpid());
}

}  // namespace

EventFile::EventFile(Warn warn) : warn_(std::move(warn)) {}

void EventFile::on_start(const RunSummary& summary) {
  const double time = unix_time();
  path_ = summary.output / file_name(time);
  const std::string failure = file_.open(path_);
  if (!failure.empty()) {
    warned_ = true;
    if (warn_) warn_({path_.string(), "cannot be written: " + failure, "training continues without it"});
  }
  std::string records = record_frame(file_version_event(time));
  if (summary.attempt > 1 || summary.first_step > 0) {
    records += record_frame(session_start_event(time, summary.first_step + 1));
  }
  write(records);
}

void EventFile::on_step(const StepEvent& event) {
  std::vector<ScalarValue> scalars = {{"epoch", static_cast<float>(event.epoch)}};
  for (const auto& [name, value] : step_values(event)) scalars.push_back({name, static_cast<float>(value)});
  write(record_frame(scalars_event(event.time, event.step, scalars)));
}

void EventFile::on_validation(const ValidationEvent& event) {
  if (event.loss) {
    write(record_frame(scalars_event(unix_time(), event.step, {{"validation_loss", static_cast<float>(*event.loss)}})));
  }
  for (std::size_t i = 0; i < event.images.size(); ++i) {
    const Image& image = event.images[i];
    write(record_frame(
        image_event(unix_time(), event.step,
                    {"validation/" + std::to_string(i), image.width, image.height, preview_png(event, i)})));
  }
}

void EventFile::on_identity(const IdentityEvent& event) {
  write(record_frame(scalars_event(unix_time(), event.step,
                                   {{"likeness/identity", static_cast<float>(event.identity)},
                                    {"likeness/accepted", static_cast<float>(event.accepted)},
                                    {"likeness/prompt_fidelity", static_cast<float>(event.prompt_fidelity)},
                                    {"likeness/leak", static_cast<float>(event.leak)},
                                    {"likeness/score", static_cast<float>(event.score)}})));
}

void EventFile::write(std::string_view messages_in_frames) {
  const std::string failure = file_.append(messages_in_frames);
  if (failure.empty() || std::exchange(warned_, true) || !warn_) return;
  warn_({path_.string(), "cannot be written: " + failure, "training continues without it"});
}

}  // namespace sdtune::train
