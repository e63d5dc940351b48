#include "tests/gpu/recorded/record.h"

#include <algorithm>
#include <cstring>
#include <sstream>

namespace sdtune::record {

namespace {

using Text = std::ostringstream;

void write(Text& json, const Tally& tally) {
  json << '[' << tally.calls << ", " << tally.bytes << ']';
}

void write(Text& json, std::int64_t number) {
  json << number;
}

void write(Text& json, const Part& part);

// Names of operators, shapes and parts hold no quotes.
template <typename Value>
void write(Text& json, const std::map<std::string, Value>& entries) {
  json << '{';
  const char* comma = "";
  for (const auto& [name, value] : entries) {
    json << comma << '"' << name << "\": ";
    write(json, value);
    comma = ", ";
  }
  json << '}';
}

void write(Text& json, const Part& part) {
  json << "{\"operators\": ";
  write(json, part.operators);
  json << ", \"layout_copies\": ";
  write(json, part.layout_copies);
  json << ", \"waits\": ";
  write(json, part.waits);
  json << ", \"copies_to_host\": " << part.copies_to_host << ", \"copies_to_device\": " << part.copies_to_device;
  json << ", \"live_bytes\": " << part.live_bytes << ", \"peak_bytes\": " << part.peak_bytes << '}';
}

}  // namespace

Record& Record::instance() {
  static Record& record = *new Record;  // memory may come back when static objects are gone
  return record;
}

void Record::begin(const std::string& name) {
  const std::lock_guard lock(mutex_);
  current_ = name;
  Part& part = parts_[name];
  part.live_bytes = live_bytes_;
  part.peak_bytes = std::max(part.peak_bytes, live_bytes_);
}

void Record::add_operator(const std::string& name, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Tally& tally = parts_[current_].operators[name];
  ++tally.calls;
  tally.bytes += bytes;
  ++position_;
}

void Record::add_layout_copy(const std::string& what, std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  Tally& tally = parts_[current_].layout_copies[what];
  ++tally.calls;
  tally.bytes += bytes;
}

void Record::add_wait(const std::string& what) {
  const std::lock_guard lock(mutex_);
  ++parts_[current_].waits[what];
}

void Record::add_copy(bool to_host) {
  const std::lock_guard lock(mutex_);
  Part& part = parts_[current_];
  ++(to_host ? part.copies_to_host : part.copies_to_device);
}

void Record::add_memory(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  Part& part = parts_[current_];
  part.live_bytes = live_bytes_;
  part.peak_bytes = std::max(part.peak_bytes, live_bytes_);
}

std::int64_t Record::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

std::int64_t Record::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

std::int64_t Record::position() const {
  const std::lock_guard lock(mutex_);
  return position_;
}

std::string Record::json() const {
  const std::lock_guard lock(mutex_);
  Text json;
  write(json, parts_);
  return json.str();
}

void Record::clear() {
  const std::lock_guard lock(mutex_);
  parts_.clear();
}

}  // namespace sdtune::record

// For Python and for the product's program, which both load this library.
extern "C" __attribute__((visibility("default"))) void sdtune_record_begin(const char* part) {
  sdtune::record::Record::instance().begin(part);
}

extern "C" __attribute__((visibility("default"))) void sdtune_record_clear() {
  sdtune::record::Record::instance().clear();
}

// The JSON; the caller frees it.
extern "C" __attribute__((visibility("default"))) char* sdtune_record_json() {
  return strdup(sdtune::record::Record::instance().json().c_str());
}
