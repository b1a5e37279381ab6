"""Operations of which layers and priors are composed."""
