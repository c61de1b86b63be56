// The core kernel's memory.
#pragma once

namespace kvcap_binding {

/// Takes back all that was allocated. Between calls there is nothing to keep.
void clear_arena() noexcept;

}  // namespace kvcap_binding
