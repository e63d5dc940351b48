// What an ONNX file says of its network before anything is computed: OpenCV reads the layers, but tells neither the
// shape that they want nor how they begin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sdtune::faces {

struct OnnxHeader {
  std::vector<std::int64_t> input_shape;     // of the first input that is no weight; 0 for an extent that is left open
  std::vector<std::string> first_operators;  // types of the first nodes ("Sub", "Mul", "Conv", ...), at most eight
};

// Reads the protocol buffer (onnx.proto: ModelProto.graph, GraphProto.node, .initializer and .input). Throws
// std::runtime_error saying why not, without the file's name.
OnnxHeader read_onnx_header(const std::string& file);

}  // namespace sdtune::faces
