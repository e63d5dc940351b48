#include "train/rental/preemption_notice.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "model/base/json.h"

namespace sdtune::train {

namespace {

constexpr int kOk = 200, kUnauthorized = 401, kNotFound = 404;
constexpr double kProbeSeconds = 2;

std::runtime_error unexpected(const std::string& path, int status) {
  return std::runtime_error(path + " answers with HTTP status " + std::to_string(status));
}

Json parsed(const std::string& path, const std::string& body) {
  Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) throw std::runtime_error(path + " does not answer with a JSON object");
  return json;
}

std::string text_of(const Json& object, const char* key) {
  const auto value = object.find(key);
  return value != object.end() && value->is_string() ? value->get<std::string>() : std::string();
}

// docs.aws.amazon.com, "Spot Instance interruption notices": two minutes, a question every 5 s. A rebalance
// recommendation is no notice: the machine may stay.
class Ec2 final : public PreemptionSource {
 public:
  explicit Ec2(MetadataAddress address) : address_(std::move(address)) {}

  void probe(double seconds, const std::atomic<bool>& cancelled) override { renew(seconds, cancelled); }

  std::optional<PreemptionNotice> ask(double seconds, const std::atomic<bool>& cancelled) override {
    if (token_.empty()) renew(seconds, cancelled);
    MetadataAnswer answer = ask_for_action(seconds, cancelled);
    if (answer.status == kUnauthorized) {
      renew(seconds, cancelled);
      answer = ask_for_action(seconds, cancelled);
    }
    if (answer.status == kNotFound) return std::nullopt;
    if (answer.status != kOk) throw unexpected(kAction, answer.status);
    const Json json = parsed(kAction, answer.body);
    return PreemptionNotice{"ec2: " + text_of(json, "action") + " at " + text_of(json, "time")};
  }

  double grace() const override { return 120; }
  double interval() const override { return 5; }

 private:
  static constexpr const char* kToken = "/latest/api/token";
  static constexpr const char* kAction = "/latest/meta-data/spot/instance-action";

  void renew(double seconds, const std::atomic<bool>& cancelled) {
    const MetadataAnswer answer = ask_metadata(
        address_, {"PUT", kToken, {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}}}, seconds, cancelled);
    if (answer.status != kOk) throw unexpected(kToken, answer.status);
    if (answer.body.empty() || answer.body.find_first_of("\r\n") != std::string::npos) {
      throw std::runtime_error(std::string(kToken) + " gives no token");
    }
    token_ = answer.body;
  }

  MetadataAnswer ask_for_action(double seconds, const std::atomic<bool>& cancelled) const {
    return ask_metadata(address_, {"GET", kAction, {{"X-aws-ec2-metadata-token", token_}}}, seconds, cancelled);
  }

  MetadataAddress address_;
  std::string token_;
};

// cloud.google.com, "Preemptible VM instances" and "About VM metadata".
class Google final : public PreemptionSource {
 public:
  explicit Google(MetadataAddress address) : address_(std::move(address)) {}

  void probe(double seconds, const std::atomic<bool>& cancelled) override { ask(seconds, cancelled); }

  std::optional<PreemptionNotice> ask(double seconds, const std::atomic<bool>& cancelled) override {
    const MetadataAnswer answer =
        ask_metadata(address_, {"GET", kPreempted, {{"Metadata-Flavor", "Google"}}}, seconds, cancelled);
    if (answer.status != kOk) throw unexpected(kPreempted, answer.status);
    if (answer.body.starts_with("TRUE")) return PreemptionNotice{"google: the instance is preempted"};
    if (answer.body.starts_with("FALSE")) return std::nullopt;
    throw std::runtime_error(std::string(kPreempted) + " answers neither TRUE nor FALSE");
  }

  double grace() const override { return 30; }
  double interval() const override { return 1; }

 private:
  static constexpr const char* kPreempted = "/computeMetadata/v1/instance/preempted";

  MetadataAddress address_;
};

// learn.microsoft.com, "Azure Metadata Service: Scheduled Events": events of the whole scale set come, with the names
// of the machines that they are for. The first answer may take two minutes, so the probe asks for the name alone.
class Azure final : public PreemptionSource {
 public:
  explicit Azure(MetadataAddress address) : address_(std::move(address)) {}

  void probe(double seconds, const std::atomic<bool>& cancelled) override {
    const MetadataAnswer answer = get(kName, seconds, cancelled);
    if (answer.status != kOk) throw unexpected(kName, answer.status);
    name_ = answer.body;
  }

  std::optional<PreemptionNotice> ask(double seconds, const std::atomic<bool>& cancelled) override {
    if (name_.empty()) probe(seconds, cancelled);
    const MetadataAnswer answer = get(kEvents, std::max(seconds, kFirstAnswer), cancelled);
    if (answer.status != kOk) throw unexpected(kEvents, answer.status);
    const Json json = parsed(kEvents, answer.body);
    for (const Json& event : json.value("Events", Json::array())) {
      if (event.is_object() && text_of(event, "EventType") == "Preempt" && is_for_this_machine(event)) {
        const std::string when = text_of(event, "NotBefore");
        return PreemptionNotice{"azure: preempted " + (when.empty() ? std::string("now") : "not before " + when)};
      }
    }
    return std::nullopt;
  }

  double grace() const override { return 30; }
  double interval() const override { return 1; }

 private:
  static constexpr const char* kName = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
  static constexpr const char* kEvents = "/metadata/scheduledevents?api-version=2020-07-01";
  static constexpr double kFirstAnswer = 130;  // s

  MetadataAnswer get(const char* path, double seconds, const std::atomic<bool>& cancelled) const {
    return ask_metadata(address_, {"GET", path, {{"Metadata", "true"}}}, seconds, cancelled);
  }

  bool is_for_this_machine(const Json& event) const {
    const Json resources = event.value("Resources", Json::array());
    return std::find(resources.begin(), resources.end(), Json(name_)) != resources.end();
  }

  MetadataAddress address_;
  std::string name_;
};

}  // namespace

std::unique_ptr<PreemptionSource> make_preemption_source(const std::string& cloud, const MetadataAddress& address) {
  if (cloud == "ec2") return std::make_unique<Ec2>(address);
  if (cloud == "google") return std::make_unique<Google>(address);
  return std::make_unique<Azure>(address);
}

std::optional<std::string> preemption_fault(const std::string& cloud, const MetadataAddress& address) {
  if (cloud == "none") return std::nullopt;
  try {
    const std::atomic<bool> never = false;
    make_preemption_source(cloud, address)->probe(kProbeSeconds, never);
    return std::nullopt;
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

}  // namespace sdtune::train
