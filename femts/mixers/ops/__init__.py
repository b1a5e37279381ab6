"""Operations that layers and priors are made of."""
