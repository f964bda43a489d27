#pragma once

#include <memory>
#include <string>
#include <vector>

#include "neuropod/backends/tensor_allocator.hh"

namespace neuropod::echo {

/// All take tensors on the CPU and make their result with `allocator`. Error(model_error) for
/// dtypes and shapes that they can't work with.

/// a + b, element by element.
std::shared_ptr<NeuropodTensor> add(NeuropodTensorAllocator& allocator, const NeuropodTensor& a,
                                    const NeuropodTensor& b);

/// Each element times `factor`.
std::shared_ptr<NeuropodTensor> scale(NeuropodTensorAllocator& allocator,
                                      const NeuropodTensor& tensor, double factor);

/// Adds 1 to each element.
void increment(NeuropodTensor& tensor);

/// (rows, columns) as (columns, rows).
std::shared_ptr<NeuropodTensor> transpose(NeuropodTensorAllocator& allocator,
                                          const NeuropodTensor& tensor);

/// String tensors of one shape, joined element by element.
std::shared_ptr<NeuropodTensor> join(NeuropodTensorAllocator& allocator,
                                     const std::vector<const NeuropodTensor*>& tensors,
                                     const std::string& separator);

}  // namespace neuropod::echo
