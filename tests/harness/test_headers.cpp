// Owns the precompiled headers that the tests share (simclr_fast_to_compile in third_party/Targets.cmake).
