#include "train/observe/event_record.h"

#include <bit>
#include <chrono>
#include <cstddef>

#include "train/observe/crc32c.h"

namespace sdtune::train {

namespace {

// Field numbers of event.proto and summary.proto.
enum EventField { kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7 };
enum SessionField { kStatus = 1 };
enum SummaryField { kValue = 1 };
enum ValueField { kTag = 1, kSimpleValue = 2, kImage = 4 };
enum ImageField { kImageHeight = 1, kImageWidth = 2, kColorspace = 3, kEncodedImage = 4 };

constexpr std::uint64_t kSessionStart = 1;
constexpr std::uint64_t kRgb = 3;

// How a field is encoded: the low three bits of its key.
enum WireType { kVarint = 0, kFixed64 = 1, kLengthDelimited = 2, kFixed32 = 5 };

void append_varint(std::string& message, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) message += static_cast<char>(value | 0x80);
  message += static_cast<char>(value);
}

void append_little_endian(std::string& message, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) message += static_cast<char>(value >> (8 * i));
}

void append_key(std::string& message, int field, WireType type) {
  append_varint(message, static_cast<std::uint64_t>(field) << 3 | static_cast<std::uint64_t>(type));
}

void append_number(std::string& message, int field, std::uint64_t value) {
  append_key(message, field, kVarint);
  append_varint(message, value);
}

// A string or an embedded message.
void append_bytes(std::string& message, int field, std::string_view bytes) {
  append_key(message, field, kLengthDelimited);
  append_varint(message, bytes.size());
  message += bytes;
}

std::string event_start(double time, std::int64_t step) {
  std::string message;
  append_key(message, kWallTime, kFixed64);
  append_little_endian(message, std::bit_cast<std::uint64_t>(time), 8);
  append_number(message, kStep, static_cast<std::uint64_t>(step));
  return message;
}

// Plain CRCs of data that holds CRCs are weak, hence TFRecord's mask.
std::uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(crc32c(bytes), 15) + 0xA282EAD8u;
}

}  // namespace

double unix_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string record_frame(std::string_view message) {
  std::string frame;
  append_little_endian(frame, message.size(), 8);
  append_little_endian(frame, masked_crc(frame), 4);
  frame += message;
  append_little_endian(frame, masked_crc(message), 4);
  return frame;
}

std::string file_version_event(double time) {
  std::string event = event_start(time, 0);
  append_bytes(event, kFileVersion, "brain.Event:2");
  return event;
}

std::string session_start_event(double time, std::int64_t step) {
  std::string session;
  append_number(session, kStatus, kSessionStart);
  std::string event = event_start(time, step);
  append_bytes(event, kSessionLog, session);
  return event;
}

std::string scalars_event(double time, std::int64_t step, const std::vector<ScalarValue>& scalars) {
  std::string summary;
  for (const ScalarValue& scalar : scalars) {
    std::string value;
    append_bytes(value, kTag, scalar.tag);
    append_key(value, kSimpleValue, kFixed32);
    append_little_endian(value, std::bit_cast<std::uint32_t>(scalar.value), 4);
    append_bytes(summary, kValue, value);
  }
  std::string event = event_start(time, step);
  append_bytes(event, kSummary, summary);
  return event;
}

std::string image_event(double time, std::int64_t step, const ImageValue& image) {
  std::string encoded;
  append_number(encoded, kImageHeight, static_cast<std::uint64_t>(image.height));
  append_number(encoded, kImageWidth, static_cast<std::uint64_t>(image.width));
  append_number(encoded, kColorspace, kRgb);
  append_bytes(encoded, kEncodedImage, image.png);
  std::string value;
  append_bytes(value, kTag, image.tag);
  append_bytes(value, kImage, encoded);
  std::string summary;
  append_bytes(summary, kValue, value);
  std::string event = event_start(time, step);
  append_bytes(event, kSummary, summary);
  return event;
}

}  // namespace sdtune::train
