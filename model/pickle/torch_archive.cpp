#include "model/pickle/torch_archive.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/files/safetensors_header.h"
#include "model/files/weight_format.h"
#include "model/pickle/pickle_reader.h"
#include "model/pickle/zip_directory.h"

namespace sdtune {
namespace {

using namespace std::string_view_literals;

// A checkpoint's pickle has some hundred bytes a tensor; each byte may become a value of 72.
constexpr std::uint64_t kLargestPickle = 16 << 20;
constexpr std::size_t kMostDimensions = 64;
constexpr std::uint64_t kExpansion = 4, kAlwaysAllowed = 64 << 20;

[[noreturn]] void refuse_old_format(const std::string& where) {
  throw WeightError(where, "is a pickle without a zip file, as torch.save wrote it before PyTorch 1.6",
                    "write it again: torch.save(torch.load('FILE', weights_only=True), 'new.ckpt')");
}

bool is_text(std::string_view name) {
  try {
    return !Json(name).dump().empty();
  } catch (const Json::exception&) {  // not UTF-8
    return false;
  }
}

class Archive {
 public:
  Archive(std::span<const std::byte> file, const std::string& where)
      : file_(file), where_(where), entries_(read_zip_directory(file, where)) {}

  TorchArchive read(const std::string& key) {
    find_prefix();
    const std::span<const std::byte> bytes = bytes_of("data.pkl");
    if (bytes.size() > kLargestPickle) {
      fail("", fmt::format("has a pickle of {} bytes (allowed: {})", bytes.size(), kLargestPickle));
    }
    pickle_ = read_pickle(bytes, where_ + ": data.pkl");
    TorchArchive archive;
    const PickleValue& mapping = choose_mapping(key, archive.key);
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) add(mapping.items[i], mapping.items[i + 1], archive);
    if (archive.tensors.empty()) refuse_empty(mapping, archive.key);
    check_total(archive);
    return archive;
  }

 private:
  [[noreturn]] void fail(const std::string& tensor, const std::string& what, const std::string& hint = "") const {
    throw WeightError(tensor.empty() ? where_ : where_ + ": " + tensor, what, hint);
  }

  // All entries stand in one folder, whose name is the file's of the time of writing.
  void find_prefix() {
    for (const auto& [name, entry] : entries_) {
      const std::size_t slash = name.find('/');
      if (slash == std::string::npos || name.substr(slash) != "/data.pkl") continue;
      if (!prefix_.empty()) fail("", "holds two pickles: " + prefix_ + "data.pkl and " + name);
      prefix_ = name.substr(0, slash + 1);
    }
    if (prefix_.empty()) fail("", "is a zip file that torch.save did not write: it has no data.pkl");
    if (entries_.contains(prefix_ + "constants.pkl")) {
      fail("", "is a TorchScript program, not weights", "save its state_dict() with torch.save");
    }
    if (!entries_.contains(prefix_ + "byteorder")) return;
    const std::span<const std::byte> order = bytes_of("byteorder");
    const std::string_view text(reinterpret_cast<const char*>(order.data()), order.size());
    if (text != "little") fail("", "was written on a machine of another byte order", "write it again on this one");
  }

  void refuse_compressed(const ZipEntry& entry, const std::string& name) const {
    if (entry.compressed)
      fail(name, "is compressed, and torch.save compresses nothing", "write it again with torch.save");
  }

  std::span<const std::byte> bytes_of(const std::string& name) const {
    const ZipEntry& entry = entries_.at(prefix_ + name);
    refuse_compressed(entry, prefix_ + name);
    return file_.subspan(entry.begin, entry.size);
  }

  // The value of a name; of the last where it is given twice, as Python has it.
  const PickleValue* find(const PickleValue& mapping, std::string_view name) const {
    const PickleValue* found = nullptr;
    for (std::size_t i = 0; i + 1 < mapping.items.size(); i += 2) {
      const PickleValue& key = pickle_.at(mapping.items[i]);
      if (key.kind == PickleKind::kText && key.text == name) found = &pickle_.at(mapping.items[i + 1]);
    }
    return found;
  }

  const PickleValue& choose_mapping(const std::string& wanted, std::string& chosen) const {
    const PickleValue& root = pickle_.at(pickle_.root);
    if (root.kind != PickleKind::kMapping) fail("", "holds no mapping of names to tensors");
    const PickleValue* inner = find(root, wanted.empty() ? "state_dict" : wanted);
    const bool is_mapping = inner != nullptr && inner->kind == PickleKind::kMapping;
    if (!wanted.empty() && !is_mapping) fail(wanted, "is no mapping of names to tensors in this file", others(root));
    if (!is_mapping) return root;
    chosen = wanted.empty() ? "state_dict" : wanted;
    return *inner;
  }

  // Names of the entries that hold tensors themselves.
  std::string others(const PickleValue& mapping) const {
    std::string list;
    for (std::size_t i = 0; i + 1 < mapping.items.size() && list.size() < 200; i += 2) {
      const PickleValue &key = pickle_.at(mapping.items[i]), &value = pickle_.at(mapping.items[i + 1]);
      if (key.kind != PickleKind::kText || value.kind != PickleKind::kMapping) continue;
      const bool holds = std::any_of(value.items.begin(), value.items.end(),
                                     [&](PickleRef item) { return pickle_.at(item).kind == PickleKind::kTensor; });
      if (holds) list.append(list.empty() ? "name one with --pickle-key: " : ", ").append(key.text.substr(0, 100));
    }
    return list;
  }

  [[noreturn]] void refuse_empty(const PickleValue& mapping, const std::string& key) const {
    fail(key, "holds no tensors", others(mapping));
  }

  void add(PickleRef key, PickleRef value, TorchArchive& archive) const {
    const PickleValue& name = pickle_.at(key);
    const bool is_tensor = pickle_.at(value).kind == PickleKind::kTensor;
    if (name.kind != PickleKind::kText) {
      if (is_tensor) fail("", "has a tensor whose name is no text");
      return;
    }
    if (!is_text(name.text)) fail("", "has a name that is not UTF-8");
    const std::string text(name.text);
    if (!is_tensor) {
      archive.tensors.erase(text);
      archive.left_out.push_back(text);
      return;
    }
    if (text == "__metadata__") fail(text, "is a name that safetensors keeps for itself");
    archive.tensors[text] = tensor_of(pickle_.at(value), text);
  }

  std::vector<std::int64_t> numbers_of(const PickleValue& tuple, const std::string& name) const {
    std::vector<std::int64_t> numbers;
    if (tuple.items.size() > kMostDimensions) fail(name, "has more than 64 dimensions");
    for (const PickleRef item : tuple.items) {
      const PickleValue& value = pickle_.at(item);
      if (value.kind != PickleKind::kInteger || value.integer < 0)
        fail(name, "has a size or stride that is no whole number");
      numbers.push_back(value.integer);
    }
    return numbers;
  }

  ArchivedTensor tensor_of(const PickleValue& value, const std::string& name) const {
    const PickleValue& storage = pickle_.at(value.items[0]);
    ArchivedTensor tensor;
    const PickleGlobal& type = value.global != nullptr ? *value.global : *storage.global;
    tensor.dtype = type.dtype;
    const std::uint64_t width = dtype_bytes(tensor.dtype);
    if (width == 0) fail(name, fmt::format("has a dtype that is not read (got {}.{})", type.module, type.name));
    tensor.shape = numbers_of(pickle_.at(value.items[1]), name);
    tensor.strides = numbers_of(pickle_.at(value.items[2]), name);
    if (tensor.shape.size() != tensor.strides.size()) fail(name, "has another number of strides than of dimensions");
    const auto found = entries_.find(prefix_ + "data/" + std::string(storage.text));
    if (found == entries_.end())
      fail(name, "has no storage in the file (data/" + std::string(storage.text.substr(0, 100)) + ")");
    refuse_compressed(found->second, found->first);
    // The number of elements counts bytes where the storage has no type of its own.
    const std::uint64_t storage_width =
        storage.global->dtype.empty() ? 1 : dtype_bytes(std::string(storage.global->dtype));
    std::uint64_t storage_bytes = 0, offset = 0, reach = 0;
    const bool fits =
        storage.integer >= 0 && value.integer >= 0 &&
        !__builtin_mul_overflow(static_cast<std::uint64_t>(storage.integer), storage_width, &storage_bytes) &&
        !__builtin_mul_overflow(static_cast<std::uint64_t>(value.integer), width, &offset) &&
        storage_bytes == found->second.size && !reaches_too_far(tensor, width, reach) && offset <= storage_bytes &&
        reach <= storage_bytes - offset;
    if (!fits) fail(name, fmt::format("does not fit into its storage of {} bytes", found->second.size));
    tensor.begin = found->second.begin + offset;
    tensor.end = tensor.begin + reach;
    return tensor;
  }

  // `reach`: bytes from the first element to behind the last. True where these do not fit 64 bits.
  static bool reaches_too_far(const ArchivedTensor& tensor, std::uint64_t width, std::uint64_t& reach) {
    std::uint64_t last = 0;
    reach = 0;
    if (std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end()) {
      std::int64_t elements = 1;  // of which LibTorch computes strides, though there are none
      return std::any_of(tensor.shape.begin(), tensor.shape.end(), [&](std::int64_t size) {
        return __builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements);
      });
    }
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      std::uint64_t step = 0;
      if (__builtin_mul_overflow(static_cast<std::uint64_t>(tensor.shape[i] - 1), tensor.strides[i], &step) ||
          __builtin_add_overflow(last, step, &last)) {
        return true;
      }
    }
    return __builtin_add_overflow(last, 1, &last) || __builtin_mul_overflow(last, width, &reach);
  }

  void check_total(const TorchArchive& archive) const {
    std::uint64_t total = 0;
    const std::uint64_t allowed = std::max(kExpansion * file_.size(), kAlwaysAllowed);
    for (const auto& [name, tensor] : archive.tensors) {
      const bool empty = std::find(tensor.shape.begin(), tensor.shape.end(), 0) != tensor.shape.end();
      std::uint64_t bytes = empty ? 0 : dtype_bytes(tensor.dtype);
      bool over = false;
      for (const std::int64_t size : tensor.shape)
        over = !empty && (over || __builtin_mul_overflow(bytes, size, &bytes));
      if (over || __builtin_add_overflow(total, bytes, &total) || total > allowed) {
        fail(name,
             fmt::format("with those before it would take more than {} bytes, though the file has {}", allowed,
                         file_.size()),
             "its tensors are expanded; save them with .contiguous()");
      }
    }
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::map<std::string, ZipEntry> entries_;
  std::string prefix_;  // "archive/"
  Pickle pickle_;
};

}  // namespace

bool is_torch_archive(std::span<const std::byte> file) {
  constexpr std::string_view kStart = "PK\x03\x04"sv;
  return file.size() >= kStart.size() &&
         std::string_view(reinterpret_cast<const char*>(file.data()), kStart.size()) == kStart;
}

TorchArchive parse_torch_archive(std::span<const std::byte> file, const std::string& where, const std::string& key) {
  if (is_torch_archive(file)) return Archive(file, where).read(key);
  const std::string_view head(reinterpret_cast<const char*>(file.data()), std::min<std::size_t>(file.size(), 2));
  if (head.size() == 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) refuse_old_format(where);
  refuse_other_formats(file, where);
  throw WeightError(where, "is no file of torch.save: it does not begin as a zip file does",
                    "a safetensors file needs --model in place of --pickle");
}

}  // namespace sdtune
