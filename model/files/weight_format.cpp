#include "model/files/weight_format.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "model/base/error.h"

namespace sdtune {
namespace {

using namespace std::string_view_literals;

constexpr const char* kConvert =
    "convert it, which reads the tensors and runs nothing: sdtune convert --pickle FILE --output model.safetensors";
constexpr const char* kConvertOld =
    "write it again where you trust it, torch.save(torch.load('FILE', weights_only=True), 'new.ckpt'), then: sdtune "
    "convert --pickle new.ckpt --output model.safetensors";

struct Signature {
  std::string_view start;
  const char* what;
  const char* hint;
};

constexpr std::array kSignatures = {
    Signature{"PK\x03\x04"sv, "is a PyTorch archive (.bin, .pt or .ckpt), which can run code when it is read",
              kConvert},
    Signature{"\x80\x02"sv, "is a pickle (.bin, .pt or .ckpt), which can run code when it is read", kConvertOld},
    Signature{"\x80\x03"sv, "is a pickle, which can run code when it is read", kConvertOld},
    Signature{"\x80\x04"sv, "is a pickle, which can run code when it is read", kConvertOld},
    Signature{"\x80\x05"sv, "is a pickle, which can run code when it is read", kConvertOld},
    Signature{"GGUF"sv, "is a GGUF file, which holds quantised weights", "get the original safetensors files"},
    Signature{"\x89HDF\r\n\x1a\n"sv, "is an HDF5 file (Keras)", "get the PyTorch model's safetensors files"},
    Signature{"version https://git-lfs"sv, "is a git-lfs pointer, not the weights themselves",
              "run `git lfs pull` in the model's folder"},
};

// "<!doctype", "<html" or "<?xml", after white space, in any case: an error page saved under a weight file's name.
bool looks_like_a_web_page(std::string_view head) {
  const std::size_t start = head.find_first_not_of(" \t\r\n");
  if (start == std::string_view::npos || head[start] != '<') return false;
  std::string word(head.substr(start, 9));
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word.starts_with("<!doctype") || word.starts_with("<html") || word.starts_with("<?xml");
}

// A header's length can begin with any bytes, a pickle's 0x80 0x02 among them; what follows it cannot be mistaken.
bool looks_like_safetensors(std::span<const std::byte> bytes) {
  std::uint64_t length = 0;
  if (bytes.size() <= sizeof(length)) return false;
  std::memcpy(&length, bytes.data(), sizeof(length));
  return bytes[sizeof(length)] == std::byte{'{'} && length <= bytes.size() - sizeof(length);
}

}  // namespace

void refuse_other_formats(std::span<const std::byte> bytes, const std::string& where) {
  if (bytes.empty()) throw WeightError(where, "is empty", "copy or download it again");
  if (looks_like_safetensors(bytes)) return;
  const std::string_view head(reinterpret_cast<const char*>(bytes.data()), std::min<std::size_t>(bytes.size(), 512));
  for (const Signature& signature : kSignatures) {
    if (head.starts_with(signature.start)) throw WeightError(where, signature.what, signature.hint);
  }
  if (looks_like_a_web_page(head)) {
    throw WeightError(where, "is a web page, not weights", "download it again, logged in if the model asks for it");
  }
}

}  // namespace sdtune
