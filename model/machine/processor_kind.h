// Processors of one kind compute with the same speeds: what the table of number formats goes by (processor_table.h).
#pragma once

#include <string>

#include "model/machine/machine_check.h"

namespace sdtune::model {

struct ProcessorKind {
  std::string vendor;  // as the kernel says it: AuthenticAMD, GenuineIntel; on aarch64 the implementer, 0x41
  std::string family;  // a number; on aarch64 the part, 0xd0c
  std::string model;   // a number; on aarch64 the variant
  // The widest instruction set for matrix products that the kernel lists: amx_bf16, avx512_bf16, avx512f, avx2; bf16,
  // sve, asimd on aarch64; none. A virtual machine may hide what its processor has.
  std::string isa;

  bool operator==(const ProcessorKind&) const = default;
};

// Of the machine whose files these are; texts that the kernel does not say are "unknown".
ProcessorKind processor_kind(const SystemFiles& files);
// Of this machine (system_files()).
ProcessorKind processor_kind();

// "AuthenticAMD family 26 model 2, avx512_bf16".
std::string kind_text(const ProcessorKind& kind);

// The value of the first line "NAME : VALUE" of /proc/cpuinfo; "" where there is none.
std::string cpu_field(const SystemFiles& files, const std::string& name);
// Whether a list of words, such as cpuinfo's flags, has this one.
bool has_flag(const std::string& flags, const std::string& name);

}  // namespace sdtune::model
