"""The page of `recipe report`: one HTML file that needs no network."""
