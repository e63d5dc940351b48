// What the metadata services of EC2, Google and Azure say of a machine that will be taken away.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "train/rental/metadata_request.h"

namespace sdtune::train {

struct PreemptionNotice {
  std::string text;  // "ec2: terminate at 2026-11-23T20:00:00Z"
};

// One cloud's service, with what it needs from one question to the next (a token, this machine's name).
class PreemptionSource {
 public:
  virtual ~PreemptionSource() = default;
  // Whether the service is there, and is this cloud's. Throws std::runtime_error saying why not.
  virtual void probe(double seconds, const std::atomic<bool>& cancelled) = 0;
  // A notice for this machine, or none. Throws std::runtime_error where the service does not answer as documented.
  virtual std::optional<PreemptionNotice> ask(double seconds, const std::atomic<bool>& cancelled) = 0;

  virtual double grace() const = 0;     // s between notice and end, at least
  virtual double interval() const = 0;  // s between two questions, as the cloud's manual advises
};

// Of "ec2", "google" or "azure".
std::unique_ptr<PreemptionSource> make_preemption_source(const std::string& cloud, const MetadataAddress& address);

// For the start of a run: why the service of `cloud` at `address` (preemption_address) cannot be watched. "none" can.
std::optional<std::string> preemption_fault(const std::string& cloud, const MetadataAddress& address);

}  // namespace sdtune::train
