-- Amounts with more decimals are rounded now; the comments said that they are refused.
ALTER TABLE events_inbox
    COMMENT COLUMN value 'amount, a decimal number of any length, rounded half away from zero to 4 decimals; a String so that no float is involved; numbers are accepted too',
    COMMENT COLUMN profit 'as value',
    COMMENT COLUMN extra_value 'as value'
