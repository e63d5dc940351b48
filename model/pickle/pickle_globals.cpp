#include "model/pickle/pickle_globals.h"

#include <array>

namespace sdtune {
namespace {

using enum PickleRole;

constexpr std::array kGlobals = {
    PickleGlobal{"torch._utils", "_rebuild_tensor_v2", kTensor, ""},
    PickleGlobal{"torch._utils", "_rebuild_tensor_v3", kTypedTensor, ""},
    PickleGlobal{"torch._utils", "_rebuild_parameter", kParameter, ""},
    PickleGlobal{"torch._utils", "_rebuild_parameter_with_state", kParameter, ""},
    PickleGlobal{"torch.storage", "UntypedStorage", kStorage, ""},
    PickleGlobal{"torch", "UntypedStorage", kStorage, ""},
    PickleGlobal{"torch", "Size", kSize, ""},
    PickleGlobal{"collections", "OrderedDict", kMapping, ""},
    PickleGlobal{"collections", "defaultdict", kMapping, ""},
    PickleGlobal{"collections", "Counter", kMapping, ""},
    PickleGlobal{"torch", "device", kInert, ""},
    PickleGlobal{"numpy", "dtype", kInert, ""},
    PickleGlobal{"numpy", "ndarray", kInert, ""},
    PickleGlobal{"numpy.core.multiarray", "scalar", kInert, ""},
    PickleGlobal{"numpy.core.multiarray", "_reconstruct", kInert, ""},
    PickleGlobal{"numpy._core.multiarray", "scalar", kInert, ""},
    PickleGlobal{"numpy._core.multiarray", "_reconstruct", kInert, ""},
    PickleGlobal{"_codecs", "encode", kInert, ""},
    PickleGlobal{"pytorch_lightning.callbacks.model_checkpoint", "ModelCheckpoint", kInert, ""},
    PickleGlobal{"pytorch_lightning.callbacks", "ModelCheckpoint", kInert, ""},
    PickleGlobal{"lightning.pytorch.callbacks.model_checkpoint", "ModelCheckpoint", kInert, ""},
};

// Types of Python, which a defaultdict names as its maker.
constexpr std::array<std::string_view, 10> kTypes = {"dict", "list",  "set",  "frozenset", "tuple",
                                                     "int",  "float", "bool", "str",       "complex"};

struct Dtype {
  std::string_view storage;  // of modules torch and torch.cuda
  std::string_view name;     // of module torch
  std::string_view dtype;
};

constexpr std::array kDtypes = {
    Dtype{"DoubleStorage", "float64", "F64"}, Dtype{"FloatStorage", "float32", "F32"},
    Dtype{"HalfStorage", "float16", "F16"},   Dtype{"BFloat16Storage", "bfloat16", "BF16"},
    Dtype{"LongStorage", "int64", "I64"},     Dtype{"IntStorage", "int32", "I32"},
    Dtype{"ShortStorage", "int16", "I16"},    Dtype{"CharStorage", "int8", "I8"},
    Dtype{"ByteStorage", "uint8", "U8"},      Dtype{"BoolStorage", "bool", "BOOL"},
};
// Dtypes that a checkpoint may name, and whose tensors are refused by name.
constexpr std::array<std::string_view, 9> kOtherDtypes = {"complex64",   "complex128",      "uint16",
                                                          "uint32",      "uint64",          "float8_e4m3fn",
                                                          "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"};

template <std::size_t kCount, typename Name>
constexpr std::array<PickleGlobal, kCount> globals_of(std::string_view module, PickleRole role, Name name) {
  std::array<PickleGlobal, kCount> list;
  for (std::size_t i = 0; i < kCount; ++i) list[i] = name(module, role, i);
  return list;
}

constexpr PickleGlobal storage_of(std::string_view module, PickleRole role, std::size_t i) {
  return {module, kDtypes[i].storage, role, kDtypes[i].dtype};
}
constexpr PickleGlobal dtype_of(std::string_view module, PickleRole role, std::size_t i) {
  return {module, kDtypes[i].name, role, kDtypes[i].dtype};
}
constexpr PickleGlobal other_dtype_of(std::string_view module, PickleRole role, std::size_t i) {
  return {module, kOtherDtypes[i], role, ""};
}

constexpr PickleGlobal type_of(std::string_view module, PickleRole role, std::size_t i) {
  return {module, kTypes[i], role, ""};
}

constexpr auto kPython3 = globals_of<kTypes.size()>("builtins", kInert, type_of);
constexpr auto kPython2 = globals_of<kTypes.size()>("__builtin__", kInert, type_of);
constexpr auto kStorages = globals_of<kDtypes.size()>("torch", kStorage, storage_of);
constexpr auto kCudaStorages = globals_of<kDtypes.size()>("torch.cuda", kStorage, storage_of);
constexpr auto kDtypeNames = globals_of<kDtypes.size()>("torch", kDtype, dtype_of);
constexpr auto kOtherDtypeNames = globals_of<kOtherDtypes.size()>("torch", kDtype, other_dtype_of);

template <typename List>
const PickleGlobal* find_in(const List& list, std::string_view module, std::string_view name) {
  for (const PickleGlobal& global : list) {
    if (global.module == module && global.name == name) return &global;
  }
  return nullptr;
}

}  // namespace

const PickleGlobal* find_pickle_global(std::string_view module, std::string_view name) {
  const PickleGlobal* found = nullptr;
  const auto look = [&](const auto& list) {
    if (found == nullptr) found = find_in(list, module, name);
  };
  look(kGlobals);
  look(kStorages);
  look(kCudaStorages);
  look(kDtypeNames);
  look(kOtherDtypeNames);
  look(kPython3);
  look(kPython2);
  return found;
}

}  // namespace sdtune
