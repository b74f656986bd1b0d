"""Deploy: winners → a guarded, measured model. Import from the modules; this one stays free of torch."""
