#include "model/pickle/pickle_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "model/base/error.h"
#include "model/pickle/pickle_bytes.h"
#include "model/pickle/pickle_opcodes.h"

namespace sdtune {
namespace {

class Machine {
  using enum PickleKind;
  using enum PickleOpcode;

 public:
  Machine(std::span<const std::byte> bytes, const std::string& where) : in_(bytes, where) {}

  Pickle read() {
    while (true) {
      const auto opcode = static_cast<PickleOpcode>(in_.number(1));
      if (opcode == kStop) break;
      if (!read_constant(opcode) && !read_container(opcode) && !read_memory(opcode) && !read_call(opcode)) {
        in_.fail(fmt::format("the opcode 0x{:02x} is none of those that tensors need", static_cast<int>(opcode)));
      }
    }
    pickle_.root = pop();
    return std::move(pickle_);
  }

 private:
  // What handles an opcode returns true.
  bool push(PickleValue value) {
    pickle_.values.push_back(std::move(value));
    stack_.push_back(static_cast<PickleRef>(pickle_.values.size() - 1));
    return true;
  }
  bool push_integer(std::int64_t value) { return push({.kind = kInteger, .integer = value, .text = {}, .items = {}}); }
  bool push_text(std::uint64_t bytes) { return push({.kind = kText, .text = in_.text(bytes), .items = {}}); }
  bool push_inert(std::uint64_t bytes = 0) {
    in_.text(bytes);
    return push({.text = {}, .items = {}});
  }
  bool push_mark() {
    marks_.push_back(stack_.size());
    return true;
  }
  bool push_again(PickleRef value) {
    stack_.push_back(value);
    return true;
  }
  bool push_items(PickleKind kind, std::vector<PickleRef> items) {
    return push({.kind = kind, .text = {}, .items = std::move(items)});
  }

  // Nothing below the last mark is taken before the mark is.
  PickleRef pop() {
    if (stack_.size() <= (marks_.empty() ? 0 : marks_.back())) in_.fail("takes a value where there is none");
    const PickleRef top = stack_.back();
    stack_.pop_back();
    return top;
  }
  std::vector<PickleRef> pop_many(std::size_t count) {
    std::vector<PickleRef> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    return items;
  }
  std::vector<PickleRef> pop_to_mark() {
    if (marks_.empty()) in_.fail("takes a mark where there is none");
    const auto first = stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back());
    std::vector<PickleRef> items(first, stack_.end());
    stack_.erase(first, stack_.end());
    marks_.pop_back();
    return items;
  }
  // The value on top, which stays there.
  PickleRef top() {
    const PickleRef value = pop();
    stack_.push_back(value);
    return value;
  }

  bool read_constant(PickleOpcode opcode) {
    switch (opcode) {
      case kProto:
        return read_protocol();
      case kFrame:
        return skip(8);
      case kNone:
        return push_inert();
      case kNewTrue:
        return push_integer(1);
      case kNewFalse:
        return push_integer(0);
      case kBinInt1:
        return push_integer(static_cast<std::int64_t>(in_.number(1)));
      case kBinInt2:
        return push_integer(static_cast<std::int64_t>(in_.number(2)));
      case kBinInt:
        return push_integer(static_cast<std::int32_t>(in_.number(4)));
      case kLong1:
        return push_long(in_.number(1));
      case kLong4:
        return push_long(in_.number(4));
      case kBinFloat:
        return push_inert(8);
      case kBinUnicode:
        return push_text(in_.number(4));
      case kShortBinUnicode:
        return push_text(in_.number(1));
      case kBinUnicode8:
        return push_text(in_.number(8));
      // Python 2's strings: names of tensors in files of that time.
      case kShortBinString:
        return push_text(in_.number(1));
      case kBinString:
        return push_text(in_.number(4));
      case kBinBytes:
        return push_inert(in_.number(4));
      case kShortBinBytes:
        return push_inert(in_.number(1));
      case kBinBytes8:
        return push_inert(in_.number(8));
      default:
        return false;
    }
  }

  bool read_protocol() {
    const std::uint64_t protocol = in_.number(1);
    if (protocol < 2 || protocol > 5) {
      in_.fail(fmt::format("has a protocol that torch.save does not write (got {}; allowed: 2 to 5)", protocol));
    }
    return true;
  }
  bool skip(std::uint64_t bytes) {
    in_.text(bytes);
    return true;
  }

  // One that needs more than 64 bits is no size of a tensor.
  bool push_long(std::uint64_t bytes) {
    return bytes > 8 ? push_inert(bytes) : push_integer(in_.signed_number(static_cast<unsigned>(bytes)));
  }

  bool read_container(PickleOpcode opcode) {
    switch (opcode) {
      case kMark:
        return push_mark();
      case kEmptyTuple:
        return push_items(kTuple, {});
      case kTuple1:
        return push_items(kTuple, pop_many(1));
      case kTuple2:
        return push_items(kTuple, pop_many(2));
      case kTuple3:
        return push_items(kTuple, pop_many(3));
      case kTupleOp:
        return push_items(kTuple, pop_to_mark());
      case kEmptyList:
        return push_items(kList, {});
      case kListOp:
        return push_items(kList, pop_to_mark());
      case kAppend:
        return extend(kList, pop_many(1));
      case kAppends:
        return extend(kList, pop_to_mark());
      case kEmptyDict:
        return push_items(kMapping, {});
      case kDict:
        return make_dict();
      case kSetItem:
        return extend(kMapping, pop_many(2));
      case kSetItems:
        return extend(kMapping, pop_to_mark());
      case kEmptySet:
        return push_inert();
      case kAddItems:
        return extend(kInert, pop_to_mark());
      case kFrozenSet:
        return push_frozen_set();
      default:
        return false;
    }
  }

  bool make_dict() {
    std::vector<PickleRef> items = pop_to_mark();
    push_items(kMapping, {});
    return extend(kMapping, items);
  }
  bool push_frozen_set() {
    pop_to_mark();
    return push_inert();
  }

  // Adds to the container on top. What is inert takes anything and keeps nothing.
  bool extend(PickleKind kind, const std::vector<PickleRef>& added) {
    PickleValue& container = pickle_.values[top()];
    if (container.kind == kInert) return true;
    if (container.kind != kind) in_.fail("adds items to a value that has none");
    if (kind == kMapping && added.size() % 2 != 0) in_.fail("gives a key without a value");
    container.items.insert(container.items.end(), added.begin(), added.end());
    return true;
  }

  bool read_memory(PickleOpcode opcode) {
    switch (opcode) {
      case kPop:
        return read_pop();
      case kPopMark:
        return pop_mark();
      case kDup:
        return push_again(top());
      case kBinPut:
        return keep(in_.number(1));
      case kLongBinPut:
        return keep(in_.number(4));
      case kMemoize:
        return keep(memory_.size());
      case kBinGet:
        return recall(in_.number(1));
      case kLongBinGet:
        return recall(in_.number(4));
      default:
        return false;
    }
  }

  // Takes a mark where nothing stands on it, as Python does.
  bool read_pop() {
    if (!marks_.empty() && marks_.back() == stack_.size()) {
      marks_.pop_back();
    } else {
      pop();
    }
    return true;
  }
  bool pop_mark() {
    pop_to_mark();
    return true;
  }
  bool keep(std::uint64_t number) {
    memory_[number] = top();
    return true;
  }

  bool recall(std::uint64_t number) {
    const auto found = memory_.find(number);
    if (found == memory_.end()) in_.fail("recalls a value that was not kept");
    return push_again(found->second);
  }

  bool read_call(PickleOpcode opcode) {
    switch (opcode) {
      case kGlobalName:
        return read_global();
      case kStackGlobal:
        return take_global();
      case kReduce:
      case kNewObj:
        return call();
      case kBuild:
        return build();
      case kBinPersId:
        return push_storage(pop());
      default:
        return false;
    }
  }

  bool read_global() {
    const std::string_view module = in_.line();
    return push_global(module, in_.line());
  }
  bool take_global() {
    const PickleValue& name = pickle_.at(pop());
    const PickleValue& module = pickle_.at(pop());
    if (module.kind != kText || name.kind != kText) in_.fail("imports something that is no name");
    return push_global(module.text, name.text);
  }
  bool call() {
    const PickleRef arguments = pop();
    return push_result(pop(), arguments);
  }

  bool push_global(std::string_view module, std::string_view name) {
    const PickleGlobal* global = find_pickle_global(module, name);
    if (global == nullptr) {
      in_.fail(fmt::format("names {}.{}, which no tensor needs; nothing of it was run", module.substr(0, 100),
                           name.substr(0, 100)));
    }
    return push({.kind = kGlobal, .text = {}, .global = global, .items = {}});
  }

  // The state that an object would take: OrderedDict's _metadata, a parameter's attributes. None of it is a tensor's.
  bool build() {
    pop();
    const PickleKind kind = pickle_.at(top()).kind;
    if (kind != kMapping && kind != kTensor && kind != kInert) in_.fail("gives a state to a value that has none");
    return true;
  }

  bool push_result(PickleRef function, PickleRef arguments) {
    const PickleValue& callee = pickle_.at(function);
    const std::vector<PickleRef>& given = pickle_.at(arguments).items;
    if (callee.kind != kGlobal || pickle_.at(arguments).kind != kTuple) in_.fail("calls a value that is no known name");
    switch (callee.global->role) {
      case PickleRole::kTensor:
        return push_tensor(given, nullptr);
      case PickleRole::kTypedTensor: {
        if (given.size() < 7 || pickle_.at(given[6]).kind != kGlobal) in_.fail("makes a tensor without a dtype");
        return push_tensor(given, pickle_.at(given[6]).global);
      }
      case PickleRole::kParameter: {
        if (given.empty() || pickle_.at(given[0]).kind != kTensor) in_.fail("makes a parameter of no tensor");
        return push_again(given[0]);
      }
      case PickleRole::kSize: {
        if (given.size() != 1 || pickle_.at(given[0]).kind != kTuple) in_.fail("makes a size of no numbers");
        return push_again(given[0]);
      }
      case PickleRole::kMapping:
        return push_mapping(given);
      case PickleRole::kInert:
        return push_inert();
      case PickleRole::kStorage:
      case PickleRole::kDtype:
        break;
    }
    in_.fail(fmt::format("calls {}.{}", callee.global->module, callee.global->name));
  }

  bool push_tensor(const std::vector<PickleRef>& given, const PickleGlobal* dtype) {
    const bool right = given.size() >= 4 && pickle_.at(given[0]).kind == kStorage &&
                       pickle_.at(given[1]).kind == kInteger && pickle_.at(given[2]).kind == kTuple &&
                       pickle_.at(given[3]).kind == kTuple && (dtype == nullptr || dtype->role == PickleRole::kDtype);
    if (!right) in_.fail("makes a tensor of something else than storage, offset, size and stride");
    return push({.kind = kTensor,
                 .integer = pickle_.at(given[1]).integer,
                 .text = {},
                 .global = dtype,
                 .items = {given[0], given[2], given[3]}});
  }

  // OrderedDict(), or of pairs, as Python 2 wrote it; defaultdict's maker is not asked for.
  bool push_mapping(const std::vector<PickleRef>& given) {
    std::vector<PickleRef> items;
    for (const PickleRef argument : given) {
      if (pickle_.at(argument).kind != kList) continue;
      // One list may be named again and again: what is made of it must not outgrow the pickle.
      copied_ += pickle_.at(argument).items.size();
      if (copied_ > in_.size()) in_.fail("makes mappings of one list again and again");
      for (const PickleRef pair : pickle_.at(argument).items) {
        const PickleValue& value = pickle_.at(pair);
        if ((value.kind != kList && value.kind != kTuple) || value.items.size() != 2)
          in_.fail("makes a mapping of no pairs");
        items.insert(items.end(), value.items.begin(), value.items.end());
      }
    }
    return push_items(kMapping, std::move(items));
  }

  // ("storage", type, name, location, number of elements)
  bool push_storage(PickleRef identity) {
    const std::vector<PickleRef>& given = pickle_.at(identity).items;
    const bool right = pickle_.at(identity).kind == kTuple && given.size() >= 5 && pickle_.at(given[0]).kind == kText &&
                       pickle_.at(given[0]).text == "storage" && pickle_.at(given[1]).kind == kGlobal &&
                       pickle_.at(given[1]).global->role == PickleRole::kStorage &&
                       pickle_.at(given[2]).kind == kText && pickle_.at(given[4]).kind == kInteger;
    if (!right) in_.fail("refers to something outside that is no storage of a tensor");
    return push({.kind = kStorage,
                 .integer = pickle_.at(given[4]).integer,
                 .text = pickle_.at(given[2]).text,
                 .global = pickle_.at(given[1]).global,
                 .items = {}});
  }

  PickleBytes in_;
  Pickle pickle_;
  std::vector<PickleRef> stack_;
  std::vector<std::size_t> marks_;  // the stack's height at each
  std::unordered_map<std::uint64_t, PickleRef> memory_;
  std::size_t copied_ = 0;  // items of lists that became mappings
};

}  // namespace

Pickle read_pickle(std::span<const std::byte> bytes, const std::string& where) {
  return Machine(bytes, where).read();
}

}  // namespace sdtune
