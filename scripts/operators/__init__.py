"""What the product and diffusers ask of a GPU, counted on one of which only the calls exist (tests/gpu/recorded)."""
