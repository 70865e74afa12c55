"""Messages of River v2.0, in both codecs."""
