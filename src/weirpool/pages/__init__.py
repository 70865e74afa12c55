"""What the pages of commands share: who may ask for one, and how texts of peers are shown. May import the top files."""
