// ref.h: The reference kernels: one for every operator kind, plain and slow, in double if the result is a float.
//
// They are the last row of every table and the oracle for tests of all other kernels. So each is written to be obviously right: the
// definition as a loop, no blocking, no special cases for speed. One file contains a family; functors.h defines the functions of one
// element.
#pragma once

#include <memory>
#include <string>

#include "kernels/backend.h"

namespace serin::kernels::ref {

using Prepared = std::unique_ptr<Kernel>;

Prepared unary(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared binary(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pointwise(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared select(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared cast(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared conv(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared matmul(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pool(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared reduce(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared softmax(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared layer_norm(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared batch_norm(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared strided_copy(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared concat(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared pad(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared gather(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared arg_max(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared non_zero(const OpDesc& desc, PrepareContext& context, std::string& why);
/// [n, c, h, w] <-> [n, blocks, h, w, b].
Prepared channel_blocks(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared transfer(const OpDesc& desc, PrepareContext& context, std::string& why);
Prepared cum_sum(const OpDesc& desc, PrepareContext& context, std::string& why);

/// Any kernels::Generic: finds its name in the families of generic.cc.
Prepared generic(const OpDesc& desc, PrepareContext& context, std::string& why);
bool knows_generic(std::string_view name);

}  // namespace serin::kernels::ref
