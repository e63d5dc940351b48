// TensorBoard's records, encoded by hand: six small protocol buffer messages (event.proto, summary.proto) in TFRecord
// frames. Without libprotobuf, because LibTorch exports a copy of another version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sdtune::train {

// A frame: length (8 bytes), masked CRC-32C of it, the message, masked CRC-32C of the message; little-endian.
std::string record_frame(std::string_view message);

// Seconds since 1970, now: the time of an event.
double unix_time();

// Encoded Event messages, `time` as of unix_time(); frame each with record_frame.
std::string file_version_event(double time);
// A session that starts at `step`: TensorBoard forgets what earlier files of the run say of this and later steps.
std::string session_start_event(double time, std::int64_t step);

struct ScalarValue {
  std::string tag;
  float value = 0;
};
std::string scalars_event(double time, std::int64_t step, const std::vector<ScalarValue>& scalars);

struct ImageValue {
  std::string tag;
  std::int64_t width = 0;   // px
  std::int64_t height = 0;  // px
  std::string png;          // a whole file
};
std::string image_event(double time, std::int64_t step, const ImageValue& image);

}  // namespace sdtune::train
