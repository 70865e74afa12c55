"""Rows in an object store before they are acknowledged. May import the top files, `journal`, `objects` and `archive`.

A group is a set of feeds that one collector process owns at a time. Its *sequence* is a list of *bundles*, numbered
objects that are created and never replaced. A bundle has what all feeds of the group have received within an interval.
Creating the next number is at once the write, the publication and the fence: if another collector has taken the group
over, the number exists, nothing is acknowledged, and the publishers keep what the successor needs. Therefore the first
bundle of each owner is never deleted: it has the number that a former owner would write next, however late it wakes up.
"""
